"""Scenes of celery with its Redis transport: python3 celery_scenes.py PORT. Plays them all with one worker, whose start takes
the longest, and prints the outcomes as JSON."""

import json
import os
import signal
import subprocess
import sys

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


def main():
    tasks.connection().flushall()
    worker = start_worker("first@here")
    try:
        outcomes = {scene.__name__: scene() for scene in (result, failure, retry, group, chord, revocation)}
        print(json.dumps(outcomes))
    finally:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()


if __name__ == "__main__":
    main()
