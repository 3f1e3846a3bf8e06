"""Scenes of a job queue with Debian's python3-rq: python3 rq_scenes.py PORT SCENE. Prints the outcome as JSON."""

import json
import os
import subprocess
import sys
import threading
from datetime import timedelta

import redis
import rq
from rq.command import send_shutdown_command
from rq.registry import FailedJobRegistry, FinishedJobRegistry

import rq_jobs

TIMEOUT_S = 40


def work_off(queue):
    rq.Worker([queue], connection=queue.connection).work(burst=True, logging_level="ERROR")


def result(queue):
    job = queue.enqueue(rq_jobs.add, 2, 3)
    before = job.get_status()
    work_off(queue)
    return [before, job.get_status(refresh=True), job.result, len(FinishedJobRegistry(queue=queue))]


def failure(queue):
    job = queue.enqueue(rq_jobs.fail)
    work_off(queue)
    failed = FailedJobRegistry(queue=queue)
    outcome = [job.get_status(refresh=True), job.id in failed.get_job_ids(), "this job always fails" in job.exc_info]
    failed.requeue(job.id)
    return outcome + [job.get_status(refresh=True), len(queue)]


def retry(queue):
    job = queue.enqueue(rq_jobs.succeed_at_third_try, "tries", retry=rq.Retry(max=3))
    work_off(queue)
    return [job.get_status(refresh=True), job.result, queue.connection.get("tries").decode()]


def dependency(queue):
    first = queue.enqueue(rq_jobs.note, "first")
    queue.enqueue(rq_jobs.note, "second", depends_on=first)
    queue.enqueue(rq_jobs.note, "other")
    work_off(queue)
    return rq_jobs.connection().lrange("notes", 0, -1)


def two_workers(queue):
    jobs = 12
    for number in range(jobs):
        queue.enqueue(rq_jobs.note, str(number))
    command = ["/usr/bin/rq", "worker", "--burst", "--quiet", "--url", "redis://127.0.0.1:%s/" % os.environ["QUEUE_PORT"], queue.name]
    workers = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(2)]
    for worker in workers:
        worker.wait(TIMEOUT_S)
    return sorted(map(int, rq_jobs.connection().lrange("notes", 0, -1))) == list(range(jobs))


def shutdown_by_message(queue):
    """An idle worker listens to a channel of its own, and goes when it is told to there."""
    command = ["/usr/bin/rq", "worker", "--quiet", "--name", "idle", "--url", "redis://127.0.0.1:%s/" % os.environ["QUEUE_PORT"], queue.name]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as worker:
        killer = threading.Timer(TIMEOUT_S, worker.kill)
        killer.start()
        job = queue.enqueue(rq_jobs.note, "served")
        while not queue.connection.llen("notes"):
            pass
        while job.get_status(refresh=True) != "finished":
            pass
        while queue.connection.pubsub_numsub("rq:pubsub:idle")[0][1] == 0:
            pass
        send_shutdown_command(queue.connection, "idle")
        worker.wait()
        killer.cancel()
        return worker.returncode


def two_schedulers(queue):
    """A job for later. Of two workers that could queue it when its time has come, the one does that has the lock of schedulers;
    its scheduler is a process of its own, with a connection of its own, that keeps the lock and gives it back."""
    command = ["/usr/bin/rq", "worker", "--with-scheduler", "--quiet", "--url", "redis://127.0.0.1:%s/" % os.environ["QUEUE_PORT"]]
    names = ["one", "other"]
    workers = [subprocess.Popen([*command, "--name", name, queue.name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for name in names]
    killers = [threading.Timer(TIMEOUT_S, worker.kill) for worker in workers]
    for killer in killers:
        killer.start()
    for name in names:
        while queue.connection.pubsub_numsub("rq:pubsub:" + name)[0][1] == 0:
            pass
    job = queue.enqueue_in(timedelta(seconds=1), rq_jobs.note, "later")
    while job.get_status(refresh=True) != "finished":
        pass
    locked = queue.connection.exists("rq:scheduler-lock:jobs")
    for name in names:
        send_shutdown_command(queue.connection, name)
    codes = [worker.wait() for worker in workers]
    for killer in killers:
        killer.cancel()
    return [rq_jobs.connection().lrange("notes", 0, -1), locked, codes, queue.connection.exists("rq:scheduler-lock:jobs")]


SCENES = {scene.__name__: scene for scene in (result, failure, retry, dependency, two_workers, shutdown_by_message, two_schedulers)}

if __name__ == "__main__":
    os.environ["QUEUE_PORT"] = sys.argv[1]
    os.environ["PYTHONPATH"] = os.path.dirname(os.path.abspath(__file__))
    client = redis.Redis(port=int(sys.argv[1]))
    client.flushall()
    print(json.dumps(SCENES[sys.argv[2]](rq.Queue("jobs", connection=client))))
