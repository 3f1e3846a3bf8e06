"""Tasks for celery, with the server as broker and as store of results: what its workers import."""

import os
import signal
import time

import celery
import redis

VISIBILITY_TIMEOUT_S = 1
URL = "redis://127.0.0.1:%s/0" % os.environ["QUEUE_PORT"]

app = celery.Celery("celery_tasks", broker=URL, backend=URL)
app.conf.update(
    # What a worker took with it comes back after so many seconds.
    broker_transport_options={"visibility_timeout": VISIBILITY_TIMEOUT_S},
    worker_prefetch_multiplier=1,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_track_started=True,
    broker_connection_retry_on_startup=True,
)


def connection():
    return redis.Redis(port=int(os.environ["QUEUE_PORT"]), decode_responses=True)


@app.task
def add(left, right):
    return left + right


@app.task
def total(numbers):
    return sum(numbers)


@app.task
def fail():
    raise ValueError("this task always fails")


@app.task(bind=True, max_retries=5)
def succeed_at_third_try(self):
    if self.request.retries < 2:
        raise self.retry(countdown=0)
    return self.request.retries


@app.task
def hold_until_released(name):
    """Says that it has begun, and ends when it is let go."""
    connection().rpush(name + ":begun", os.getppid())
    while not connection().exists(name + ":released"):
        time.sleep(0.01)
    return "released"


@app.task
def end_own_process(name):
    """Kills the process that it runs in, the first time."""
    if connection().rpush(name + ":begun", os.getpid()) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return "done by another"
