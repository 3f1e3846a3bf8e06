"""The lock recipes of src/locks/RECIPES.md, each with redis-cli and with three client libraries.

In a race forty clients act at once, and whoever wins must be alone. What a recipe calls a time stamp is the application's own
number; locks expire by the server's clock.
"""

import os
import random
import secrets
import unittest

import clients
import harness

CONTENDERS = 40
ROUNDS = 15
TTL_MS = 30000

COMPARE_AND_DELETE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
"""

SETNX_AND_EXPIRE = """
local won = redis.call('SETNX', KEYS[1], KEYS[2])
if won == 1 then
  redis.call('EXPIRE', KEYS[1], KEYS[3])
end
return won
"""


def needs_newer_commands(test):
    """Marks a test of commands that are newer than the reference: nothing else knows them yet."""
    newer = "latchkey" in os.path.basename(os.environ.get("LATCHKEY_SERVER", ""))
    return unittest.skipUnless(newer, "the reference has no such commands")(test)


class LockTestCase(harness.ServerTestCase):
    """A server and forty clients of a kind, with the database empty before each test."""

    crew_type = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.crew = cls.crew_type(cls.server.port, CONTENDERS)

    @classmethod
    def tearDownClass(cls):
        cls.crew.close()
        super().tearDownClass()

    def setUp(self):
        self.server_view = self.connect()
        self.server_view.call("FLUSHALL")

    def ttl_ms(self, key):
        return self.server_view.call("PTTL", key)

    def expire_now(self, key):
        """The lock's time is up, and the server has seen to it."""
        self.server_view.call("PEXPIRE", key, 1)
        self.eventually(lambda: self.server_view.call("EXISTS", key) == 0)

    def winner(self, answers, won=1):
        """The one client whose answer is `won`."""
        winners = [number for number, answer in enumerate(answers) if answer == won]
        self.assertEqual(len(winners), 1, answers)
        return winners[0]


class TimeStampRecipe:
    """1. SETNX lock.foo <now + timeout + 1>, taken over with GETSET from a holder that crashed."""

    def test_setnx_answers_1_to_the_holder_and_0_to_everybody_else(self):
        c1, c2 = self.crew[:2]
        self.assertEqual(c1.ask("setnx", "lock.foo", "1011"), 1)
        self.assertEqual(c2.ask("setnx", "lock.foo", "1012"), 0)
        self.assertEqual(c2.ask("get", "lock.foo"), "1011")

    def test_c4_takes_over_from_a_crashed_holder_and_c5_loses_the_race(self):
        c3, c4, c5 = self.crew[:3]
        self.assertEqual(c3.ask("setnx", "lock.foo", "1011"), 1)
        c3_crashed_at = 1050
        for client in (c4, c5):
            self.assertEqual(client.ask("setnx", "lock.foo", "1061"), 0)
            self.assertLess(int(client.ask("get", "lock.foo")), c3_crashed_at)
        self.assertEqual(c4.ask("getset", "lock.foo", "1061"), "1011")
        seen_by_c5 = c5.ask("getset", "lock.foo", "1062")
        self.assertEqual(seen_by_c5, "1061")
        self.assertGreater(int(seen_by_c5), c3_crashed_at)

    def test_of_forty_that_find_the_lock_stale_exactly_one_reads_the_stale_stamp(self):
        for round_number in range(ROUNDS):
            stale = str(1000 + round_number)
            self.crew[0].ask("set", "lock.foo", stale)
            self.winner(self.crew.race("getset", lambda number: ("lock.foo", str(5000 + number))), won=stale)

    def test_of_forty_exactly_one_gets_the_free_lock(self):
        for round_number in range(ROUNDS):
            lock = "lock.%d" % round_number
            won = self.winner(self.crew.race("setnx", lambda number: (lock, str(number))))
            self.assertEqual(self.crew[0].ask("get", lock), str(won))


class TransactionRecipe:
    """2. MULTI / SETNX / EXPIRE / EXEC."""

    def test_the_lock_and_its_deadline_come_together(self):
        self.assertEqual(self.crew[0].ask("multi_setnx_expire", "lock", "c1", 30), [1, 1])
        self.assertGreater(self.ttl_ms("lock"), 0)

    def test_the_trap_a_loser_extends_the_lock_it_did_not_get(self):
        self.crew[0].ask("multi_setnx_expire", "lock", "c1", 30)
        self.assertLessEqual(self.ttl_ms("lock"), 30000)
        self.assertEqual(self.crew[1].ask("multi_setnx_expire", "lock", "c2", 1000), [0, 1])
        self.assertEqual(self.crew[1].ask("get", "lock"), "c1")
        self.assertGreater(self.ttl_ms("lock"), 30000)

    def test_of_forty_transactions_exactly_one_gets_the_lock(self):
        for round_number in range(ROUNDS):
            lock = "lock.%d" % round_number
            answers = self.crew.race("multi_setnx_expire", lambda number: (lock, str(number), 30))
            self.assertTrue(all(extended == 1 for _, extended in answers), answers)
            won = self.winner([won for won, _ in answers])
            self.assertEqual(self.crew[0].ask("get", lock), str(won))


class ConditionalScriptRecipe:
    """3. SETNX + EXPIRE in Lua, where only the winner sets the deadline; everything is passed as KEYS."""

    def lock(self, client, value, ttl):
        return client.ask("eval", SETNX_AND_EXPIRE, ["lock", value, str(ttl)], [])

    def test_a_loser_leaves_the_deadline_alone(self):
        self.assertEqual(self.lock(self.crew[0], "c1", 30), 1)
        self.assertEqual(self.lock(self.crew[1], "c2", 1000), 0)
        self.assertEqual(self.crew[1].ask("get", "lock"), "c1")
        self.assertTrue(0 < self.ttl_ms("lock") <= 30000)

    def test_after_the_deadline_the_next_one_gets_the_lock(self):
        self.lock(self.crew[0], "c1", 30)
        self.expire_now("lock")
        self.assertEqual(self.lock(self.crew[1], "c2", 30), 1)

    def test_of_forty_scripts_exactly_one_wins(self):
        for round_number in range(ROUNDS):
            lock = "lock.%d" % round_number
            answers = self.crew.race("eval", lambda number: (SETNX_AND_EXPIRE, [lock, str(number), "30"], []))
            won = self.winner(answers)
            self.assertEqual(self.crew[0].ask("get", lock), str(won))
            self.assertTrue(0 < self.ttl_ms(lock) <= 30000)


class TokenRecipe:
    """4. SET name random NX PX 30000, released by whoever still holds it."""

    def release(self, client, name, token):
        return client.ask("eval", COMPARE_AND_DELETE, [name], [token])

    def test_the_holder_releases_its_lock(self):
        token = secrets.token_hex(20)
        self.assertEqual(self.crew[0].ask("set_nx_px", "name", token, TTL_MS), 1)
        self.assertEqual(self.crew[1].ask("set_nx_px", "name", "other", TTL_MS), 0)
        self.assertTrue(0 < self.ttl_ms("name") <= TTL_MS)
        self.assertEqual(self.release(self.crew[0], "name", token), 1)
        self.assertIsNone(self.crew[1].ask("get", "name"))

    def test_a_lock_expires_by_itself(self):
        self.assertEqual(self.crew[0].ask("set_nx_px", "name", "first", 20), 1)
        self.eventually(lambda: self.crew[1].ask("set_nx_px", "name", "second", TTL_MS) == 1)

    def test_an_owner_whose_lock_expired_cannot_delete_its_successors(self):
        first, second = self.crew[:2]
        first.ask("set_nx_px", "name", "token of the first", TTL_MS)
        self.expire_now("name")
        self.assertEqual(second.ask("set_nx_px", "name", "token of the second", TTL_MS), 1)
        self.assertEqual(self.release(first, "name", "token of the first"), 0)
        self.assertEqual(second.ask("get", "name"), "token of the second")
        self.assertEqual(self.release(second, "name", "token of the second"), 1)

    def test_the_trap_a_plain_delete_removes_the_successors_lock(self):
        first, second = self.crew[:2]
        first.ask("set_nx_px", "name", "token of the first", TTL_MS)
        self.expire_now("name")
        second.ask("set_nx_px", "name", "token of the second", TTL_MS)
        self.assertEqual(first.ask("raw", "DEL", "name"), 1)
        self.assertIsNone(second.ask("get", "name"))

    def test_of_forty_exactly_one_gets_the_lock_and_only_it_can_release(self):
        for round_number in range(ROUNDS):
            won = self.winner(self.crew.race("set_nx_px", lambda number: ("name", str(number), TTL_MS)))
            answers = self.crew.race("eval", lambda number: (COMPARE_AND_DELETE, ["name"], [str(number)]))
            self.assertEqual(self.winner(answers), won)


class CacheRefreshRecipe:
    """5. SET ... NX EX around a cache refresh, and the compare-and-set commands that need no script."""

    def refresh(self, client, token):
        """What a page does whose cache is cold: whoever gets the lock computes, everybody else uses what is there."""
        if client.ask("set_nx_ex", "refresh", token, 30) == 0:
            return False
        client.ask("raw", "INCR", "refreshes")
        client.ask("set", "page", "fresh by " + token)
        return True

    def test_one_refreshes_while_the_others_serve_what_is_cached(self):
        self.assertTrue(self.refresh(self.crew[0], "first"))
        self.assertFalse(self.refresh(self.crew[1], "second"))
        self.assertEqual(self.crew[1].ask("get", "page"), "fresh by first")
        self.expire_now("refresh")
        self.assertTrue(self.refresh(self.crew[1], "second"))
        self.assertEqual(self.crew[0].ask("get", "page"), "fresh by second")
        self.assertEqual(self.crew[0].ask("get", "refreshes"), "2")

    def test_of_forty_exactly_one_refreshes(self):
        for round_number in range(ROUNDS):
            lock = "refresh.%d" % round_number
            self.winner(self.crew.race("set_nx_ex", lambda number: (lock, str(number), 30)))

    @needs_newer_commands
    def test_set_ifeq_extends_only_the_lock_of_its_owner(self):
        owner, other = self.crew[:2]
        owner.ask("set_nx_ex", "refresh", "owner", 30)
        self.assertIsNone(other.ask("raw", "SET", "refresh", "other", "IFEQ", "other", "EX", "1000"))
        self.assertLessEqual(self.ttl_ms("refresh"), 30000)
        self.assertEqual(owner.ask("raw", "SET", "refresh", "owner", "IFEQ", "owner", "EX", "1000"), "OK")
        self.assertGreater(self.ttl_ms("refresh"), 30000)

    @needs_newer_commands
    def test_delex_and_delifeq_release_only_the_lock_of_their_owner(self):
        owner, other = self.crew[:2]
        for release in (lambda token: ("DELEX", "refresh", "IFEQ", token), lambda token: ("DELIFEQ", "refresh", token)):
            owner.ask("set_nx_ex", "refresh", "owner", 30)
            self.assertEqual(other.ask("raw", *release("other")), 0)
            self.assertEqual(owner.ask("get", "refresh"), "owner")
            self.assertEqual(owner.ask("raw", *release("owner")), 1)
            self.assertEqual(owner.ask("raw", *release("owner")), 0)
            self.assertIsNone(owner.ask("get", "refresh"))

    @needs_newer_commands
    def test_of_forty_exactly_one_takes_over_with_set_ifeq_and_only_it_can_release(self):
        for round_number in range(ROUNDS):
            self.crew[0].ask("set", "refresh", "stale")
            take_over = lambda number: ("SET", "refresh", str(number), "IFEQ", "stale", "EX", "30")
            won = self.winner(self.crew.race("raw", take_over), won="OK")
            self.assertEqual(self.crew[0].ask("get", "refresh"), str(won))
            if round_number % 2:
                release = lambda number: ("DELEX", "refresh", "IFEQ", str(number))
            else:
                release = lambda number: ("DELIFEQ", "refresh", str(number))
            self.assertEqual(self.winner(self.crew.race("raw", release)), won)


class LockRecipes(TimeStampRecipe, TransactionRecipe, ConditionalScriptRecipe, TokenRecipe, CacheRefreshRecipe, LockTestCase):
    pass


class WithRedisCli(LockRecipes):
    crew_type = clients.RedisCli


class WithPythonRedis(LockRecipes):
    crew_type = clients.PythonRedis


class WithPhpRedis(LockRecipes):
    crew_type = clients.PhpRedis


class WithRubyRedis(LockRecipes):
    crew_type = clients.RubyRedis


class Redlock:
    """The application's half of Redlock: a lock holds when a majority of the servers gave it within its time to live.

    `clock_ms` is the application's clock; drift is what clocks may part by while a lock is held.
    """

    def __init__(self, workers, clock_ms):
        self.workers = workers
        self.clock_ms = clock_ms

    def lock(self, name, token, ttl_ms):
        """Milliseconds for which the lock holds; 0 when it was not got, and then nothing is left behind."""
        started_ms = self.clock_ms()
        granted = self.of_all("set_nx_px", name, token, ttl_ms).count(1)
        drift_ms = ttl_ms // 100 + 2
        valid_ms = ttl_ms - (self.clock_ms() - started_ms) - drift_ms
        if granted >= len(self.workers) // 2 + 1 and valid_ms > 0:
            return valid_ms
        self.unlock(name, token)
        return 0

    def unlock(self, name, token):
        """On how many servers the lock was still ours; asks those too that seem not to have given it."""
        return self.of_all("eval", COMPARE_AND_DELETE, [name], [token]).count(1)

    def of_all(self, verb, *arguments):
        answers = []
        for worker in self.workers:
            try:
                answers.append(worker.ask(verb, *arguments))
            except clients.ClientError:
                answers.append(None)
        return answers


class RedlockTestCase(unittest.TestCase):
    """6. Redlock over five servers."""

    crew_type = None

    @classmethod
    def setUpClass(cls):
        cls.ports = [harness.free_port() for _ in range(5)]
        cls.crews = [cls.crew_type(port, 2) for port in cls.ports]

    @classmethod
    def tearDownClass(cls):
        for crew in cls.crews:
            crew.close()

    def setUp(self):
        self.servers = []
        for port in self.ports:
            server = harness.Server(port=port)
            self.addCleanup(server.stop)
            self.servers.append(server)
        self.first, self.second = (Redlock([crew[i] for crew in self.crews], lambda: 0) for i in range(2))
        for redlock in (self.first, self.second):
            redlock.of_all("get", "resource")  # lets them find that their former server has gone

    def value_at(self, number, key):
        with self.servers[number].connect() as client:
            return client.call("GET", key)

    def test_a_majority_gives_the_lock_to_one(self):
        self.assertEqual(self.first.lock("resource", "token of the first", 10000), 10000 - 102)
        self.assertEqual(self.second.lock("resource", "token of the second", 10000), 0)
        for number in range(5):
            self.assertEqual(self.value_at(number, "resource"), "token of the first")
        self.assertEqual(self.first.unlock("resource", "token of the first"), 5)
        self.assertGreater(self.second.lock("resource", "token of the second", 10000), 0)

    def test_two_stopped_servers_change_nothing_and_a_third_ends_it(self):
        self.servers[1].stop()
        self.servers[3].stop()
        self.assertGreater(self.first.lock("resource", "token of the first", 10000), 0)
        self.assertEqual(self.second.lock("resource", "token of the second", 10000), 0)
        self.assertEqual(self.first.unlock("resource", "token of the first"), 3)
        self.assertGreater(self.second.lock("resource", "token of the second", 10000), 0)
        self.second.unlock("resource", "token of the second")
        self.servers[0].stop()
        self.assertEqual(self.first.lock("resource", "token of the first", 10000), 0)
        for number in (2, 4):
            self.assertIsNone(self.value_at(number, "resource"))

    def test_servers_stopped_while_the_lock_is_held_do_not_give_it_away(self):
        self.assertGreater(self.first.lock("resource", "token of the first", 10000), 0)
        self.servers[0].stop()
        self.servers[4].stop()
        self.assertEqual(self.second.lock("resource", "token of the second", 10000), 0)
        self.assertEqual(self.first.unlock("resource", "token of the first"), 3)

    def test_a_split_vote_gives_the_lock_to_nobody_and_leaves_nothing_behind(self):
        for number in (0, 1):
            self.first.workers[number].ask("set_nx_px", "resource", "token of the first", 10000)
        self.first.workers[2].ask("set_nx_px", "resource", "token of a third", 10000)
        self.assertEqual(self.second.lock("resource", "token of the second", 10000), 0)
        self.assertEqual(self.first.unlock("resource", "token of the first"), 2)
        self.assertEqual([self.value_at(number, "resource") for number in range(5)],
                         [None, None, "token of a third", None, None])

    def test_a_clock_that_ran_on_while_asking_voids_the_lock(self):
        self.first.clock_ms = iter([0, 9898]).__next__
        self.assertEqual(self.first.lock("resource", "token of the first", 10000), 0)
        for number in range(5):
            self.assertIsNone(self.value_at(number, "resource"))
        self.first.clock_ms = iter([0, 9897]).__next__
        self.assertEqual(self.first.lock("resource", "token of the first", 10000), 1)

    def test_a_server_whose_clock_runs_fast_gives_its_lock_away_but_not_the_majority(self):
        self.assertGreater(self.first.lock("resource", "token of the first", 10000), 0)
        for number in random.sample(range(5), 2):
            with self.servers[number].connect() as client:
                client.call("PEXPIREAT", "resource", 1)
        self.assertEqual(self.second.lock("resource", "token of the second", 10000), 0)
        self.assertEqual(self.first.unlock("resource", "token of the first"), 3)


class RedlockWithRedisCli(RedlockTestCase):
    crew_type = clients.RedisCliCalls


class RedlockWithPythonRedis(RedlockTestCase):
    crew_type = clients.PythonRedis


class RedlockWithPhpRedis(RedlockTestCase):
    crew_type = clients.PhpRedis


class RedlockWithRubyRedis(RedlockTestCase):
    crew_type = clients.RubyRedis


del LockTestCase, LockRecipes, RedlockTestCase  # only with clients of a kind are they tests

if __name__ == "__main__":
    unittest.main()
