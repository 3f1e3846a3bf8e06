"""Code under test, with python3-redis: fault_scenes.py PORT SCENE prints what became of it as JSON.

The test has asked the server for faults before.
"""

import json
import sys

import redis
from redis.backoff import NoBackoff
from redis.exceptions import BusyLoadingError, ConnectionError, LockNotOwnedError
from redis.retry import Retry


def counts_once_loaded(port):
    """Tries again while the server is loading."""
    client = redis.Redis(port=port, retry=Retry(NoBackoff(), 5), retry_on_error=[BusyLoadingError])
    return client.incr("visits")


def counts_again_after_a_lost_reply(port):
    """Tries again when the connection is lost, though it cannot know whether the command has run."""
    client = redis.Redis(port=port, retry=Retry(NoBackoff(), 1), retry_on_error=[ConnectionError])
    return client.incr("visits")


def holds_a_lock(port):
    """Takes a lock, and gives it back."""
    lock = redis.Redis(port=port).lock("lock", timeout=30)
    acquired = lock.acquire(blocking=False)
    try:
        lock.release()
        return [acquired, "released"]
    except LockNotOwnedError:
        return [acquired, "lost"]


def works_in_the_background(port):
    """Takes three jobs off a queue and enters each in a list."""
    client = redis.Redis(port=port, client_name="worker")
    for _ in range(3):
        _, job = client.blpop("jobs")
        client.rpush("done", job)
    return client.llen("done")


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[2]](int(sys.argv[1]))))
