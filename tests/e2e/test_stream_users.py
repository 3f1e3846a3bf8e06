"""What applications build on streams and sorted sets: consumer groups whose workers die, queues woken by a marker that tell what
happens in a stream, leaderboards with ties. With Debian's python3 and its python3-redis."""

import subprocess
import sys
import unittest

import redis

import clients
import harness
from clients import marker_queue

WORK_TIMEOUT_S = 60


class WorkersTestCase(harness.ServerTestCase):
    def setUp(self):
        self.view = self.connect()
        self.view.call("FLUSHALL")

    def library(self):
        client = redis.Redis(port=self.server.port, decode_responses=True)
        self.addCleanup(client.close)
        return client

    def start_worker(self, script, *arguments):
        command = [sys.executable, str(clients.HERE / script), str(self.server.port), *map(str, arguments)]
        worker = subprocess.Popen(command)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        return worker

    def assert_ends_well(self, worker):
        self.assertEqual(worker.wait(WORK_TIMEOUT_S), 0)


class ConsumerGroup(WorkersTestCase):
    """Three workers of clients/group_worker.py, of which one is killed with entries in its hands."""

    BATCH = 50

    def add_entries(self):
        for number in range(self.BATCH):
            self.view.call("XADD", "orders", "*", "number", number)

    def lose_a_worker(self, claim):
        self.view.call("XGROUP", "CREATE", "orders", "workers", 0, "MKSTREAM")
        lost = self.start_worker("group_worker.py", "lost", claim, "stop")
        others = [self.start_worker("group_worker.py", name, claim) for name in ("second", "third")]
        self.eventually(lambda: len(self.view.call("XINFO", "CONSUMERS", "orders", "workers")) == 3)
        stopped = None
        while stopped is None:
            self.add_entries()
            stopped = self.view.call("BLPOP", "stopped", 0.1)
        lost.kill()
        lost.wait()
        self.add_entries()
        total = self.view.call("XLEN", "orders")
        self.view.call("SET", "expected", total)
        for worker in others:
            self.assert_ends_well(worker)
        return total

    def assert_all_is_done(self, total):
        done = self.view.call("HGETALL", "done")
        times = dict(zip(done[::2], map(int, done[1::2])))
        entries = [entry for entry, _ in self.view.call("XRANGE", "orders", "-", "+")]
        self.assertEqual(sorted(times), sorted(entries))
        self.assertGreaterEqual(min(times.values()), 1)
        self.assertGreaterEqual(self.view.call("SCARD", "claimed"), 5)
        self.assertEqual(self.view.call("XPENDING", "orders", "workers"), [0, None, None, None])
        (group,) = self.view.call("XINFO", "GROUPS", "orders")
        group = dict(zip(group[::2], group[1::2]))
        self.assertEqual(
            group, {"name": "workers", "consumers": 3, "pending": 0, "last-delivered-id": entries[-1], "entries-read": total, "lag": 0})
        consumers = [dict(zip(each[::2], each[1::2])) for each in self.view.call("XINFO", "CONSUMERS", "orders", "workers")]
        self.assertEqual([(each["name"], each["pending"]) for each in consumers], [("lost", 0), ("second", 0), ("third", 0)])

    def test_what_a_killed_worker_held_is_claimed_by_a_scan(self):
        self.assert_all_is_done(self.lose_a_worker("xautoclaim"))

    def test_what_a_killed_worker_held_is_found_in_the_list_of_what_is_pending_and_claimed(self):
        self.assert_all_is_done(self.lose_a_worker("xclaim"))


class MarkerQueue(WorkersTestCase):
    """The queue of clients/marker_queue.py, a small one of BullMQ's kind."""

    def setUp(self):
        super().setUp()
        self.queue = marker_queue.Queue(self.server.port, "jobs")
        self.addCleanup(self.queue.client.close)

    def start_workers(self, count):
        return [self.start_worker("marker_queue.py", "jobs", "worker-%d" % number) for number in range(count)]

    def done(self):
        return [int(job) for job in self.view.call("LRANGE", "jobs:done", 0, -1)]

    def close_when_done(self, workers, jobs):
        self.eventually(lambda: self.view.call("ZCARD", "jobs:completed") == jobs, WORK_TIMEOUT_S)
        self.view.call("SET", "jobs:closing", 1)
        for worker in workers:
            self.assert_ends_well(worker)
        for name in ("wait", "active", "delayed"):
            self.assertEqual(self.view.call("EXISTS", "jobs:" + name), 0, name)

    def events_until(self, last, count):
        """Follows the stream of events as it grows, until the event `last` has come `count` times."""
        reader = self.library()
        position, events = "0-0", []
        while sum(event == last for event, _ in events) < count:
            for _, entries in reader.xread({"jobs:events": position}, block=int(WORK_TIMEOUT_S * 1000)):
                events += [(fields["event"], int(fields["job"])) for _, fields in entries]
                position = entries[-1][0]
        return events

    def test_each_job_is_done_once_and_its_events_come_in_order(self):
        workers = self.start_workers(3)
        jobs = [self.queue.add("job %d" % number) for number in range(15)]
        events = self.events_until("completed", len(jobs))
        self.close_when_done(workers, len(jobs))
        self.assertEqual(sorted(self.done()), jobs)
        for job in jobs:
            self.assertEqual([event for event, about in events if about == job], ["added", "waiting", "active", "completed"])
            self.assertEqual(self.view.call("HGET", "jobs:job:%d" % job, "result"), "JOB %d" % (job - 1))

    def test_one_worker_takes_the_jobs_in_the_order_in_which_they_came(self):
        jobs = [self.queue.add("job") for _ in range(20)]
        self.close_when_done(self.start_workers(1), len(jobs))
        self.assertEqual(self.done(), jobs)

    def test_idle_workers_wait_at_the_marker_and_a_job_wakes_them(self):
        workers = self.start_workers(3)
        for number in range(10):
            self.eventually(lambda: "blocked_clients:3" in self.view.call("INFO", "clients").splitlines())
            self.queue.add("job")
            self.eventually(lambda: len(self.done()) == number + 1)
        self.close_when_done(workers, 10)

    def test_delayed_jobs_are_done_in_the_order_of_their_times_and_not_before(self):
        delays = {self.queue.add("job", delay_ms): delay_ms for delay_ms in (400, 100, 300, 200)}
        self.close_when_done(self.start_workers(1), len(delays))
        self.assertEqual(self.done(), sorted(delays, key=delays.get))
        for job in delays:
            due, taken = self.view.call("HMGET", "jobs:job:%d" % job, "due", "taken")
            self.assertGreaterEqual(int(taken), int(due))

    def test_the_job_of_a_killed_worker_is_done_by_another(self):
        job = self.queue.add("job")
        lost = self.start_worker("marker_queue.py", "jobs", "lost", "hold")
        self.assertEqual(self.view.call("BLPOP", "jobs:held", WORK_TIMEOUT_S), ["jobs:held", str(job)])
        lost.kill()
        lost.wait()
        workers = self.start_workers(1)
        self.eventually(lambda: self.queue.recover() == 1)
        events = self.events_until("completed", 1)
        self.close_when_done(workers, 1)
        self.assertEqual([event for event, _ in events],
                         ["added", "waiting", "active", "stalled", "waiting", "active", "completed"])
        self.assertEqual(self.view.call("HGET", "jobs:job:%d" % job, "attempts"), "2")

    def test_the_stream_of_events_is_kept_short_by_whole_nodes(self):
        jobs = 150
        for _ in range(jobs):
            self.queue.add("job")
        self.close_when_done(self.start_workers(2), jobs)
        added = 4 * jobs
        nodes = int(self.view.call("CONFIG", "GET", "stream-node-max-entries")[1])
        length = self.view.call("XLEN", "jobs:events")
        self.assertGreaterEqual(length, marker_queue.EVENTS_KEPT)
        self.assertLess(length, marker_queue.EVENTS_KEPT + nodes)
        stream = self.view.call("XINFO", "STREAM", "jobs:events")
        self.assertEqual(dict(zip(stream[::2], stream[1::2]))["entries-added"], added)


class Leaderboard(WorkersTestCase):
    """Points of players by week. Equal points stand in the order of the names, and backwards where the best come first."""

    MONDAY = {"ada": 120, "bob": 90, "cyd": 120, "dee": 75, "eve": 90}
    NEXT_WEEK = {"bob": 60, "cyd": 30, "eve": 60, "fay": 200}

    def setUp(self):
        super().setUp()
        self.board = self.library()
        self.board.zadd("week:1", self.MONDAY)
        self.board.zadd("week:2", self.NEXT_WEEK)

    def best(self, key, count):
        return self.board.zrange(key, 0, count - 1, desc=True, withscores=True)

    def test_the_best_come_first_and_ties_stand_in_the_reverse_order_of_names(self):
        self.assertEqual(self.best("week:1", 3), [("cyd", 120), ("ada", 120), ("eve", 90)])
        self.assertEqual(self.board.zrange("week:1", 0, -1), ["dee", "bob", "eve", "ada", "cyd"])

    def test_a_player_asks_for_rank_and_points_at_once(self):
        self.assertEqual(self.view.call("ZREVRANK", "week:1", "ada", "WITHSCORE"), [1, "120"])
        self.assertEqual(self.view.call("ZREVRANK", "week:1", "bob", "WITHSCORE"), [3, "90"])
        self.assertIsNone(self.view.call("ZREVRANK", "week:1", "nobody", "WITHSCORE"))

    def test_who_catches_up_stands_by_name_and_not_by_time(self):
        self.assertEqual(self.board.zincrby("week:1", 45, "dee"), 120)
        self.assertEqual(self.best("week:1", 3), [("dee", 120), ("cyd", 120), ("ada", 120)])

    def test_points_change_only_upwards_where_the_best_attempt_counts(self):
        self.assertEqual(self.board.zadd("week:1", {"ada": 100, "bob": 95, "gus": 10}, gt=True, ch=True), 2)
        self.assertEqual(self.board.zmscore("week:1", ["ada", "bob", "gus"]), [120, 95, 10])

    def test_the_neighbours_of_a_player_are_those_around_the_rank(self):
        rank = self.board.zrevrank("week:1", "eve")
        self.assertEqual(self.board.zrevrange("week:1", rank - 1, rank + 1), ["ada", "eve", "bob"])

    def test_who_played_every_week_is_ranked_by_the_sum(self):
        self.assertEqual(self.board.zinterstore("month", ["week:1", "week:2"]), 3)
        self.assertEqual(self.best("month", 10), [("eve", 150), ("cyd", 150), ("bob", 150)])

    def test_weeks_count_by_weight_and_the_best_of_them_can_be_taken(self):
        self.board.zinterstore("month", {"week:1": 1, "week:2": 2})
        self.assertEqual(self.best("month", 10), [("eve", 210), ("bob", 210), ("cyd", 180)])
        self.board.zunionstore("record", ["week:1", "week:2"], aggregate="MAX")
        self.assertEqual(self.best("record", 3), [("fay", 200), ("cyd", 120), ("ada", 120)])

    def test_a_page_of_equal_points_is_read_by_names(self):
        board = {"player:%04d" % number: 7 for number in range(1000)}
        self.board.zadd("full", board)
        names = sorted(board)
        self.assertEqual(self.board.zrange("full", "[player:0500", "[player:0509", bylex=True), names[500:510])
        self.assertEqual([name for name, _ in self.best("full", 10)], names[:-11:-1])
        self.assertEqual(self.board.zrevrank("full", "player:0250"), 749)


if __name__ == "__main__":
    unittest.main()
