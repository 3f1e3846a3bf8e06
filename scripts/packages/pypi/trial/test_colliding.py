"""Tests that collide on a server they share. With TRIAL_SPACES=no they do share it, and must fail, else they would show nothing."""

import os
import time

import pytest
import redis

WORKERS = int(os.environ["TRIAL_WORKERS"])
ROUNDS = 100


@pytest.fixture
def cache(latchkey_server, redis_url):
    url = latchkey_server.url if os.environ["TRIAL_SPACES"] == "no" else redis_url
    with redis.Redis.from_url(url, decode_responses=True) as client:
        yield client


@pytest.fixture(scope="session", autouse=True)
def together(tmp_path_factory, worker_id):
    """All workers begin at once."""
    meeting = os.environ["TRIAL_MEETING"]
    open(os.path.join(meeting, worker_id), "w").close()
    deadline = time.monotonic() + 60
    while len(os.listdir(meeting)) < WORKERS:
        assert time.monotonic() < deadline, "the other workers did not come"
        time.sleep(0.001)


parts = pytest.mark.parametrize("part", range(4))


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
