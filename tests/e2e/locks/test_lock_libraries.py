"""Locks as the libraries take them that people use: forty clients at once, a holder that crashes, one that pauses beyond its
deadline, one that prolongs in time. Deadlines pass by CLOCK ADVANCE. All of it is correct use, in which LOCK CHECK finds nothing.
"""

import os
import tempfile
import unittest

import clients
import harness

CONTENDERS = 40
TTL_MS = 30000


class RedisPy(clients.LibraryCrew):
    command = ["/usr/bin/python3", str(clients.HERE / "locks.py"), "redis-py"]


class Redisson(clients.LibraryCrew):
    command = ["/usr/bin/python3", str(clients.HERE / "locks.py"), "redisson"]


class RedisRb(clients.LibraryCrew):
    command = ["ruby", str(clients.HERE / "locks.rb")]


class PhpRedis(clients.LibraryCrew):
    command = ["php", str(clients.HERE / "locks.php")]


class NodeCrew(clients.LibraryCrew):
    kind = None

    def __init__(self, port, count):
        with tempfile.TemporaryDirectory() as directory:
            self.command = ["node", clients.beside_node_modules(directory, clients.HERE / "locks.mjs"), self.kind]
            super().__init__(port, count)


class Redlock(NodeCrew):
    kind = "redlock"


class RedisSemaphore(NodeCrew):
    kind = "redis-semaphore"


class LockScenes(unittest.TestCase):
    crew_type = None
    servers_wanted = 1
    rounds = int(os.environ.get("LATCHKEY_LOCK_ROUNDS", "25"))  # of each contender
    tells_losses = True  # whether the library says, when it releases a lock, that it had lost it
    watched = "lock"  # the key that LOCK knows as a lock
    takes_more = False  # than once for each round

    @classmethod
    def setUpClass(cls):
        cls.servers = [harness.Server() for _ in range(cls.servers_wanted)]

    @classmethod
    def tearDownClass(cls):
        for server in cls.servers:
            server.stop()

    def setUp(self):
        self.views = [server.connect() for server in self.servers]
        for view in self.views:
            self.addCleanup(view.close)
            view.call("FLUSHALL")
            view.call("CLOCK", "FREEZE")  # so that deadlines pass when the test says so, however slow the machine is
        self.watching = self.views[0].call("COMMAND", "INFO", "lock") != [None]
        if self.watching:
            for view in self.views:
                view.call("LOCK", "RESET")
            self.addCleanup(self.assert_nothing_found)

    def assert_nothing_found(self):
        for server in self.servers:
            with server.connect() as view:
                self.assertEqual(view.call("LOCK", "CHECK"), [], view.call("LOCK", "DOCTOR"))

    def crew(self, count):
        crew = self.crew_type(",".join(str(server.port) for server in self.servers), count)
        self.addCleanup(crew.close)
        return crew

    def advance(self, duration):
        for view in self.views:
            view.call("CLOCK", "ADVANCE", duration)

    def assert_released(self, answer):
        self.assertEqual(answer, 1 if self.tells_losses else None)

    def assert_lost(self, answer):
        self.assertEqual(answer, 0 if self.tells_losses else None)

    def test_forty_clients_count_and_none_is_lost(self):
        crew = self.crew(CONTENDERS)
        self.assertEqual(crew.race("work", lambda number: ("lock", TTL_MS, self.rounds)), [self.rounds] * CONTENDERS)
        self.assertEqual(self.views[0].call("GET", "lock:count"), str(CONTENDERS * self.rounds))
        self.assertEqual([view.call("EXISTS", "lock") for view in self.views], [0] * len(self.views))
        if self.watching:
            lock = self.views[0].call("LOCK", "INFO", self.watched)
            taken = lock[lock.index("taken") + 1]
            if self.takes_more:
                self.assertGreater(taken, 0)
            else:
                self.assertEqual(taken, CONTENDERS * self.rounds)

    def test_the_lock_of_a_crashed_holder_is_free_when_its_time_is_up(self):
        crashes, other = self.crew(2)
        self.assertEqual(crashes.ask("acquire", "lock", TTL_MS), 1)
        for view, client_id in zip(self.views, crashes.ask("connections")):
            self.assertEqual(view.call("CLIENT", "KILL", "ID", client_id), 1)
        self.advance("29s")
        self.assertEqual(other.ask("acquire", "lock", TTL_MS), 0)
        self.advance("1s")
        self.assertEqual(other.ask("acquire", "lock", TTL_MS), 1)
        self.assert_released(other.ask("release", "lock"))

    def test_a_holder_that_pauses_beyond_its_deadline_does_not_release_what_is_anothers(self):
        pauses, other, third = self.crew(3)
        self.assertEqual(pauses.ask("acquire", "lock", TTL_MS), 1)
        self.advance("31s")
        self.assertEqual(other.ask("acquire", "lock", TTL_MS), 1)
        self.assert_lost(pauses.ask("release", "lock"))
        self.assertEqual(third.ask("acquire", "lock", TTL_MS), 0)
        self.assert_released(other.ask("release", "lock"))
        self.assertEqual(third.ask("acquire", "lock", TTL_MS), 1)

    def test_who_prolongs_in_time_keeps_the_lock(self):
        holder, other = self.crew(2)
        self.assertEqual(holder.ask("acquire", "lock", TTL_MS), 1)
        for _ in range(3):
            self.advance("20s")
            self.assertEqual(holder.ask("prolong", "lock", TTL_MS), 1)
            self.assertEqual(other.ask("acquire", "lock", TTL_MS), 0)
        self.advance("31s")
        self.assertEqual(holder.ask("prolong", "lock", TTL_MS), 0)
        self.assertEqual(other.ask("acquire", "lock", TTL_MS), 1)


class RedisPyLocks(LockScenes):
    crew_type = RedisPy


class RedisRbLocks(LockScenes):
    crew_type = RedisRb


class PhpRedisLocks(LockScenes):
    crew_type = PhpRedis


@clients.needs_node_modules
class RedlockLocks(LockScenes):
    crew_type = Redlock
    servers_wanted = 5
    # Of forty who ask five servers at once, few get three of them.
    rounds = int(os.environ.get("LATCHKEY_LOCK_ROUNDS", "5"))
    takes_more = True  # some of the five where it does not get three

    def test_two_servers_that_lose_the_lock_change_nothing(self):
        holder, other = self.crew(2)
        self.assertEqual(holder.ask("acquire", "lock", TTL_MS), 1)
        for view in self.views[:2]:
            view.call("CLOCK", "ADVANCE", "31s")
        self.assertEqual(other.ask("acquire", "lock", TTL_MS), 0)
        self.assertEqual(holder.ask("release", "lock"), 1)
        self.assertEqual(other.ask("acquire", "lock", TTL_MS), 1)


@clients.needs_node_modules
class RedisSemaphoreLocks(LockScenes):
    crew_type = RedisSemaphore
    tells_losses = False
    watched = "mutex:lock"


class RedissonLocks(LockScenes):
    crew_type = Redisson

    def test_a_holder_that_enters_twice_leaves_twice(self):
        holder, other = self.crew(2)
        self.assertEqual([holder.ask("acquire", "lock", TTL_MS) for _ in range(2)], [1, 1])
        self.assertEqual(holder.ask("release", "lock"), 1)
        self.assertEqual(other.ask("acquire", "lock", TTL_MS), 0)
        self.assertEqual(holder.ask("release", "lock"), 1)
        self.assertEqual(other.ask("acquire", "lock", TTL_MS), 1)


del LockScenes  # only with clients of a kind are they tests

if __name__ == "__main__":
    unittest.main()
