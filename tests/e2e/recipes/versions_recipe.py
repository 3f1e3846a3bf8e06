import os
import uuid

import pytest
import redis

RELEASES = ["redis-6.2", "redis-7.0", "redis-7.4", "redis-8.6", "valkey-8.1", "valkey-9.1"]


@pytest.fixture(params=RELEASES)
def cache(request):
    """The same test on each release that the code is to run on, all of them in one process."""
    port = os.environ.get("REDIS_PORT", "6379")
    client = redis.Redis.from_url(f"redis://space-{uuid.uuid4()}~{request.param}:x@localhost:{port}", decode_responses=True)
    yield client
    client.close()


def sessions_end_alone(cache):
    """What an application does: it needs deadlines of fields, which not every release has."""
    try:
        cache.execute_command("HEXPIRE", "sessions", 1800, "FIELDS", 1, "anna")
    except redis.ResponseError as error:
        if not str(error).startswith("unknown command"):
            raise
        return False
    return True


def test_sessions_end_where_fields_have_deadlines(cache):
    cache.hset("sessions", mapping={"anna": "1", "bob": "1"})
    if not sessions_end_alone(cache):
        cache.expire("sessions", 1800)  # the best that an old release can do
    cache.execute_command("CLOCK", "ADVANCE", "30m")
    assert cache.hexists("sessions", "anna") is False


def test_what_the_release_lacks_is_refused(cache):
    version = cache.info("server").get("valkey_version") or cache.info("server")["redis_version"]
    assert version.startswith(("6.2.", "7.0.", "7.4.", "8.6.", "8.1.", "9.1."))
    if version.startswith("6.2."):
        with pytest.raises(redis.ResponseError, match="unknown command"):
            cache.execute_command("EXPIRETIME", "key")
