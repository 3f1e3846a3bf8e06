"""Jobs for rq: what its workers import."""

import os

import redis


def connection():
    return redis.Redis(port=int(os.environ["QUEUE_PORT"]), decode_responses=True)


def add(left, right):
    return left + right


def fail():
    raise ValueError("this job always fails")


def succeed_at_third_try(counter):
    if connection().incr(counter) < 3:
        raise ValueError("not yet")
    return "done"


def note(name):
    connection().rpush("notes", name)
