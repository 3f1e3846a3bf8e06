import os
import uuid

import pytest
import redis


@pytest.fixture
def cache():
    """A server of its own for each test: a space, which goes when the test's connections have gone."""
    port = os.environ.get("REDIS_PORT", "6379")
    client = redis.Redis.from_url(f"redis://space-{uuid.uuid4()}:x@localhost:{port}", decode_responses=True)
    yield client
    client.close()


def test_a_session_ends_after_half_an_hour(cache):
    cache.set("session:1", "anna", ex=1800)
    cache.execute_command("CLOCK", "ADVANCE", "29m")
    assert cache.get("session:1") == "anna"
    cache.execute_command("CLOCK", "ADVANCE", "1m")
    assert cache.get("session:1") is None


def test_flushall_hurts_nobody(cache):
    cache.flushall()
    cache.config_set("maxmemory-policy", "allkeys-lru")
    assert cache.dbsize() == 0
