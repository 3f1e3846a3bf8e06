"""Scenes of celery with its Redis transport: python3 celery_scenes.py PORT. Plays them with one worker, whose start takes the
longest, and the last with a second one; prints the outcomes as JSON."""

import json
import os
import signal
import subprocess
import sys
import time

TIMEOUT_S = 50
os.environ["QUEUE_PORT"] = sys.argv[1]
os.environ["PYTHONPATH"] = os.path.dirname(os.path.abspath(__file__))

import celery.exceptions  # noqa: E402  (the tasks read the environment)

import celery_tasks as tasks  # noqa: E402


def start_worker(name):
    command = [sys.executable, "-m", "celery", "--app", "celery_tasks", "worker", "--concurrency", "2", "--hostname", name,
               "--loglevel", "ERROR"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def result():
    return tasks.add.delay(2, 3).get(timeout=TIMEOUT_S)


def failure():
    outcome = tasks.fail.delay()
    try:
        outcome.get(timeout=TIMEOUT_S)
    except ValueError as error:
        return [outcome.state, str(error)]


def retry():
    return tasks.succeed_at_third_try.delay().get(timeout=TIMEOUT_S)


def group():
    return tasks.celery.group(tasks.add.s(i, i) for i in range(8)).apply_async().get(timeout=TIMEOUT_S)


def chord():
    return tasks.celery.chord((tasks.add.s(i, 1) for i in range(4)), tasks.total.s()).apply_async().get(timeout=TIMEOUT_S)


def revocation():
    """A task that runs is revoked; its worker hears of it by the channel of control messages."""
    outcome = tasks.hold_until_released.delay("revoked")
    tasks.connection().blpop("revoked:begun", timeout=TIMEOUT_S)
    outcome.revoke(terminate=True)
    try:
        outcome.get(timeout=TIMEOUT_S)
    except celery.exceptions.TaskRevokedError:
        return outcome.state


def pool_process_killed():
    """The process that does a task is killed: its worker hears of it, and has the task done again."""
    outcome = tasks.end_own_process.delay("crash")
    return [outcome.get(timeout=TIMEOUT_S), tasks.connection().llen("crash:begun")]


def worker_killed(worker):
    """A worker is killed with all its processes; the task that it had begun goes to the next.

    Nobody is told: the message lies in the hash `unacked` with the time it was taken in the zset `unacked_index`. A worker looks
    there for what is older than the visibility timeout when it starts, and then only each hundred seconds; so the timeout has to
    be over when the next one starts.
    """
    client = tasks.connection()
    outcome = tasks.hold_until_released.delay("orphan")
    client.blpop("orphan:begun", timeout=TIMEOUT_S)
    kill(worker)
    (taken_at,) = [score for _, score in client.zrange("unacked_index", 0, -1, withscores=True)]
    while time.time() < taken_at + tasks.VISIBILITY_TIMEOUT_S:
        time.sleep(0.05)
    client.set("orphan:released", 1)
    successor = start_worker("second@here")
    try:
        return [outcome.get(timeout=TIMEOUT_S), client.llen("orphan:begun")]
    finally:
        kill(successor)


def kill(worker):
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()


def main():
    tasks.connection().flushall()
    worker = start_worker("first@here")
    scenes = (result, failure, retry, group, chord, revocation, pool_process_killed)
    try:
        outcomes = {scene.__name__: scene() for scene in scenes}
        outcomes["worker_killed"] = worker_killed(worker)
        print(json.dumps(outcomes))
    finally:
        if worker.poll() is None:
            kill(worker)


if __name__ == "__main__":
    main()
