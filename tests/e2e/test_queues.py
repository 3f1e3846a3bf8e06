"""Queues that applications build on lists: semaphores of tokens in Ruby, jobs of rq, tasks of celery."""

import json
import subprocess
import unittest

import clients
import harness

SCENE_TIMEOUT_S = 120


def play(script, *arguments):
    """Runs a script of clients/ with Debian's python3, and returns the outcome that it prints."""
    command = ["/usr/bin/python3", str(clients.HERE / script), *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=SCENE_TIMEOUT_S, cwd=clients.HERE)
    if run.returncode != 0:
        raise AssertionError("%s ended with %d:\n%s" % (script, run.returncode, run.stderr))
    return json.loads(run.stdout)


class Semaphores(harness.ServerTestCase):
    """Whoever pops a token may go in; clients/semaphore.rb says how."""

    CLIENTS = 12
    TOKENS = 3

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.crew = clients.RubySemaphores(cls.server.port, cls.CLIENTS)

    @classmethod
    def tearDownClass(cls):
        cls.crew.close()
        super().tearDownClass()

    def setUp(self):
        self.view = self.connect()
        self.view.call("FLUSHALL")

    def tokens(self):
        return sorted(self.view.call("LRANGE", "door:available", 0, -1))

    def waiting(self, count):
        return lambda: "blocked_clients:%d" % count in self.view.call("INFO", "clients").splitlines()

    def test_of_all_who_find_it_missing_one_makes_the_tokens(self):
        for _ in range(10):
            self.view.call("FLUSHALL")
            self.assertEqual(sum(self.crew.race("create", lambda number: ("door", self.TOKENS))), 1)
            self.assertEqual(self.tokens(), ["0", "1", "2"])

    def test_no_more_go_in_than_there_are_tokens(self):
        most = self.crew.race("work", lambda number: ("door", self.TOKENS, 25))
        self.assertLessEqual(max(most), self.TOKENS)
        self.assertEqual(self.tokens(), ["0", "1", "2"])
        self.assertEqual(self.view.call("HGETALL", "door:grabbed"), [])

    def test_who_waits_gets_the_token_that_is_given_back(self):
        holder, waiter = self.crew[:2]
        token = holder.ask("lock", "door", 1, 100, 0)
        waiter.send("lock", "door", 1, 101, 0)
        self.eventually(self.waiting(1))
        holder.ask("unlock", "door", token)
        self.assertEqual(waiter.answer(), token)
        self.assertEqual(self.view.call("HGETALL", "door:grabbed"), [token, "101"])

    def test_those_who_wait_are_served_in_the_order_in_which_they_came(self):
        holder, *waiters = self.crew[:6]
        token = holder.ask("lock", "door", 1, 100, 0)
        for number, waiter in enumerate(waiters, 1):
            waiter.send("lock", "door", 1, 100 + number, 0)
            self.eventually(self.waiting(number))
        for waiter in waiters:
            holder.ask("unlock", "door", token)
            self.assertEqual(waiter.answer(), token)

    def test_the_token_of_a_holder_that_has_gone_is_given_back_by_another(self):
        gone, waiter, *others = self.crew
        token = gone.ask("lock", "door", 1, 100, 0)
        waiter.send("lock", "door", 1, 300, 0)
        self.eventually(self.waiting(1))
        for other in others:
            other.send("release_stale", "door", 200)
        self.assertEqual(sum(other.answer() for other in others), 1)
        self.assertEqual(waiter.answer(), token)
        self.assertEqual(self.tokens(), [])

    def test_who_waits_in_vain_gets_nothing(self):
        holder, waiter = self.crew[:2]
        holder.ask("lock", "door", 1, 100, 0)
        self.assertIsNone(waiter.ask("lock", "door", 1, 100, 1))
        self.assertEqual(self.view.call("HLEN", "door:grabbed"), 1)


class WithLocks(harness.ServerTestCase):
    """The libraries' own locks are used as they should be: nothing is found (LOCK CHECK)."""

    def setUp(self):
        view = self.connect()
        if view.call("COMMAND", "INFO", "lock") == [None]:
            return
        view.call("LOCK", "RESET")
        self.addCleanup(lambda: self.assertEqual(view.call("LOCK", "CHECK"), [], view.call("LOCK", "DOCTOR")))

    def locks(self):
        """The names of the locks that were seen."""
        return {lock[lock.index("key") + 1] for lock in self.connect().call("LOCK", "LIST")}


class Rq(WithLocks):
    """Scenes of clients/rq_scenes.py."""

    def play(self, scene):
        return play("rq_scenes.py", self.server.port, scene)

    def test_a_worker_does_a_job_and_leaves_its_result(self):
        self.assertEqual(self.play("result"), ["queued", "finished", 5, 1])

    def test_a_job_that_fails_is_kept_and_can_be_queued_again(self):
        self.assertEqual(self.play("failure"), ["failed", True, True, "queued", 1])

    def test_a_job_is_tried_again_until_it_succeeds(self):
        self.assertEqual(self.play("retry"), ["finished", "done", "3"])

    def test_a_job_waits_for_the_one_that_it_depends_on(self):
        notes = self.play("dependency")
        self.assertEqual(sorted(notes), ["first", "other", "second"])
        self.assertLess(notes.index("first"), notes.index("second"))

    def test_two_workers_do_each_job_once(self):
        self.assertTrue(self.play("two_workers"))

    def test_an_idle_worker_stops_when_it_is_told_to_on_its_channel(self):
        self.assertEqual(self.play("shutdown_by_message"), 0)

    def test_one_of_two_schedulers_queues_what_is_due(self):
        self.assertEqual(self.play("two_schedulers"), [["later"], 1, [0, 0], 0])
        self.assertIn("rq:scheduler-lock:jobs", self.locks())


class Celery(WithLocks):
    """Scenes of clients/celery_scenes.py."""

    def test_tasks_results_retries_revocation_and_killed_workers(self):
        self.assertEqual(play("celery_scenes.py", self.server.port), {
            "result": 5,
            "failure": ["FAILURE", "this task always fails"],
            "retry": 2,
            "group": [0, 2, 4, 6, 8, 10, 12, 14],
            "chord": 10,
            "revocation": "REVOKED",
            "pool_process_killed": ["done by another", 2],
            "worker_killed": ["released", 1],
        })
        self.assertEqual(self.locks(), {"unacked_mutex"})


if __name__ == "__main__":
    unittest.main()
