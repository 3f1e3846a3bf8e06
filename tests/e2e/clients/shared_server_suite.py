"""A suite for pytest-xdist that treats its server as if it were alone there: pytest -n WORKERS shared_server_suite.py

    SHARED_PORT       where the server is
    SHARED_WORKERS    how many workers there are; all begin together
    SHARED_MEETING    an empty directory, in which they meet
    SHARED_SPACES     "yes": each worker has a space of its own, by its user name
"""

import os
import time
from pathlib import Path

import pytest
import redis

ROUNDS = 100
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "alone")


@pytest.fixture(scope="session")
def url():
    meeting = Path(os.environ["SHARED_MEETING"])
    (meeting / WORKER).touch()
    deadline = time.monotonic() + 60
    while len(list(meeting.iterdir())) < int(os.environ["SHARED_WORKERS"]):
        assert time.monotonic() < deadline, "the other workers did not come"
        time.sleep(0.001)
    user = f"space-{WORKER}:x@" if os.environ["SHARED_SPACES"] == "yes" else ""
    return f"redis://{user}localhost:{os.environ['SHARED_PORT']}"


@pytest.fixture
def cache(url):
    with redis.Redis.from_url(url, decode_responses=True) as client:
        client.flushall()
        yield client


parts = pytest.mark.parametrize("part", range(8))


@parts
def test_all_keys_are_mine(cache, part):
    for number in range(ROUNDS):
        cache.flushall()
        cache.mset({f"user:{part}:{i}": number for i in range(5)})
        assert cache.dbsize() == 5


@parts
def test_the_configuration_is_mine(cache, part):
    for number in range(ROUNDS):
        threshold = str(part * ROUNDS + number)
        cache.config_set("latency-monitor-threshold", threshold)
        assert cache.config_get("latency-monitor-threshold") == {"latency-monitor-threshold": threshold}


@parts
def test_all_messages_are_for_me(cache, part):
    with cache.pubsub() as listener:
        listener.subscribe("news")
        assert listener.get_message(timeout=20)["type"] == "subscribe"
        for number in range(ROUNDS):
            assert cache.publish("news", f"{part}:{number}") == 1
            assert listener.get_message(timeout=20)["data"] == f"{part}:{number}"
