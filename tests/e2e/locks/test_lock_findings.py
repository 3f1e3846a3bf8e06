"""The recipes of src/locks/RECIPES.md, used wrongly: the server names what is wrong, and nothing else."""

import unittest
import uuid
import xml.etree.ElementTree

import harness

try:
    import redis
except ImportError:
    redis = None

COMPARE_AND_DELETE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
SETNX_EXPIRE = (
    "local won = redis.call('SETNX', KEYS[1], KEYS[2]) if won == 1 then redis.call('EXPIRE', KEYS[1], KEYS[3]) end return won"
)


class WatchedLocks(harness.ServerTestCase):
    def setUp(self):
        self.admin = self.connect()
        self.admin.call("HELLO", "3")
        self.admin.call("FLUSHALL")
        self.admin.call("LOCK", "RESET")
        self.admin.call("CLOCK", "RESET")

    def client(self, name):
        client = self.connect()
        client.call("CLIENT", "SETNAME", name)
        return client

    def now(self):
        return int(self.admin.call("TIME")[0])

    def advance(self, duration):
        self.admin.call("CLOCK", "ADVANCE", duration)

    def findings(self):
        return [finding["finding"] for finding in self.admin.call("LOCK", "CHECK")]

    def assert_found(self, *names):
        self.assertEqual(self.findings(), list(names), self.admin.call("LOCK", "DOCTOR"))

    def log(self, key):
        events = self.admin.call("LOCK", "LOG", "100", key)
        return [(event["event"], event["client-name"]) for event in reversed(events)]


class TimeStamps(WatchedLocks):
    """1. SETNX and a time stamp."""

    def take(self, client, timeout=30):
        stamp = str(self.now() + timeout + 1)
        return client.call("SETNX", "lock.foo", stamp), stamp

    def test_a_stale_lock_is_taken_over_by_getset(self):
        anna, bob = self.client("anna"), self.client("bob")
        self.assertEqual(self.take(anna)[0], 1)
        self.advance("60s")
        won, stamp = self.take(bob)
        self.assertEqual(won, 0)
        self.assertLess(int(bob.call("GETSET", "lock.foo", stamp)), self.now())
        bob.call("DEL", "lock.foo")
        self.assert_found()
        self.assertEqual(self.log("lock.foo"), [("taken", "anna"), ("refused", "bob"), ("taken-over", "bob"),
                                                ("released-blind", "bob")])

    def test_a_stale_lock_is_deleted(self):
        anna, bob = self.client("anna"), self.client("bob")
        self.take(anna)
        self.advance("60s")
        self.take(bob)
        bob.call("DEL", "lock.foo")
        self.assertEqual(self.take(bob)[0], 1)
        self.assert_found("stale-delete")

    def test_the_loser_of_a_takeover_goes_on(self):
        anna, bob, carl = self.client("anna"), self.client("bob"), self.client("carl")
        self.take(anna)
        self.advance("60s")
        stamps = {client: self.take(client)[1] for client in (bob, carl)}
        for client in (bob, carl):
            client.call("GETSET", "lock.foo", stamps[client])
        self.assert_found()
        carl.call("DEL", "lock.foo")
        self.assert_found("takeover-lost")


class Transactions(WatchedLocks):
    """2. SETNX and EXPIRE in a transaction."""

    def attempt(self, client, token):
        client.call("MULTI")
        client.call("SETNX", "lock", token)
        client.call("EXPIRE", "lock", "30")
        return client.call("EXEC")

    def test_one_at_a_time(self):
        for name in ("anna", "bob"):
            client = self.client(name)
            self.assertEqual(self.attempt(client, name), [1, 1])
            client.call("DEL", "lock")
        self.assert_found()

    def test_the_loser_prolongs(self):
        anna, bob = self.client("anna"), self.client("bob")
        self.attempt(anna, "anna")
        self.advance("10s")
        self.assertEqual(self.attempt(bob, "bob"), [0, 1])
        self.assert_found("prolonged-by-loser")
        self.assertIn("bob was refused", self.admin.call("LOCK", "CHECK")[0]["evidence"])

    def test_without_the_transaction(self):
        anna = self.client("anna")
        anna.call("SETNX", "lock", "anna")
        anna.call("EXPIRE", "lock", "30")
        self.assert_found("not-atomic")

    def test_a_crash_between_the_two(self):
        anna = self.client("anna")
        anna.call("SETNX", "lock", "anna")
        anna.close()
        self.eventually(lambda: self.findings() == ["no-deadline"])


class Scripts(WatchedLocks):
    """3. The same in Lua."""

    def test_only_the_winner_sets_the_deadline(self):
        anna, bob = self.client("anna"), self.client("bob")
        self.assertEqual(anna.call("EVAL", SETNX_EXPIRE, "3", "lock", "anna", "30"), 1)
        self.assertEqual(bob.call("EVAL", SETNX_EXPIRE, "3", "lock", "bob", "30"), 0)
        anna.call("DEL", "lock")
        self.assert_found()

    def test_somebody_else_deletes_it(self):
        anna, bob = self.client("anna"), self.client("bob")
        anna.call("EVAL", SETNX_EXPIRE, "3", "lock", "anna", "30")
        bob.call("DEL", "lock")
        self.assert_found("foreign-release")


class RandomValues(WatchedLocks):
    """4. SET NX PX with a random value."""

    def take(self, client, token=None):
        token = token or uuid.uuid4().hex
        return token if client.call("SET", "name", token, "NX", "PX", "30000") else None

    def test_taken_and_released_by_comparing(self):
        anna, bob = self.client("anna"), self.client("bob")
        token = self.take(anna)
        self.assertIsNone(self.take(bob))
        # A pool may send it through another connection.
        self.assertEqual(bob.call("EVAL", COMPARE_AND_DELETE, "1", "name", token), 1)
        self.assert_found()

    def test_a_plain_del_that_comes_late_removes_the_lock_of_another(self):
        anna, bob = self.client("anna"), self.client("bob")
        self.take(anna)
        self.advance("31s")
        self.assertIsNotNone(self.take(bob))
        anna.call("DEL", "name")
        self.assert_found("late-release")
        self.assertEqual(self.log("name"), [("taken", "anna"), ("expired", ""), ("taken", "bob"),
                                            ("released-by-stranger", "anna")])

    def test_a_value_that_is_not_random(self):
        anna, bob = self.client("anna"), self.client("bob")
        self.take(anna, "worker-0000-0000-0001")
        self.take(bob, "worker-0000-0000-0001")
        self.assert_found("foreign-token")

    def test_a_set_that_forgets_nx(self):
        anna, bob = self.client("anna"), self.client("bob")
        self.take(anna)
        bob.call("SET", "name", uuid.uuid4().hex, "PX", "30000")
        self.assert_found("overwritten")


class Refreshing(WatchedLocks):
    """5. One client refreshes a cache."""

    def test_a_time_to_live_that_is_too_short(self):
        anna = self.client("anna")
        self.admin.call("CLOCK", "FREEZE")
        for _ in range(2):
            token = uuid.uuid4().hex
            anna.call("SET", "refresh", token, "NX", "EX", "10")
            self.admin.call("CLOCK", "ADVANCE", "9500ms")
            self.assertEqual(anna.call("DELEX", "refresh", "IFEQ", token), 1)
        self.assert_found("held-long")

    def test_a_client_that_never_gets_it(self):
        anna, bob = self.client("anna"), self.client("bob")
        for _ in range(60):
            token = uuid.uuid4().hex
            anna.call("SET", "refresh", token, "NX", "EX", "10")
            bob.call("SET", "refresh", uuid.uuid4().hex, "NX", "EX", "10")
            bob.call("SET", "refresh", uuid.uuid4().hex, "NX", "EX", "10")
            anna.call("DELEX", "refresh", "IFEQ", token)
        self.assert_found("starved")


@unittest.skipIf(redis is None, "python3-redis is not installed")
class RedisPy(WatchedLocks):
    def pool(self):
        pool = redis.Redis(port=self.server.port, decode_responses=True)
        self.addCleanup(pool.close)
        return pool

    def test_its_lock_used_as_it_should_be(self):
        anna, bob = self.pool(), self.pool()
        for _ in range(20):
            with anna.lock("jobs", timeout=30) as held:
                self.assertFalse(bob.lock("jobs", timeout=30).acquire(blocking=False))
                held.extend(10)
                held.reacquire()
        self.assert_found()
        self.assertEqual(self.admin.call("LOCK", "INFO", "jobs")["taken"], 20)

    def test_its_lock_without_a_timeout_by_a_client_that_crashes(self):
        anna = self.pool()
        self.assertTrue(anna.lock("jobs").acquire())
        anna.connection_pool.disconnect()
        self.eventually(lambda: self.findings() == ["no-deadline"])


class Reports(WatchedLocks):
    def test_a_space_has_locks_of_its_own(self):
        anna = self.client("anna")
        anna.call("SPACE", "ENTER", self.admin.call("SPACE", "CREATE", "locks"))
        anna.call("SET", "lock", "a", "NX", "PX", "30000")
        self.assertEqual(len(anna.call("LOCK", "LIST")), 1)
        self.assertEqual(self.admin.call("LOCK", "LIST"), [])

    def test_a_million_keys_leave_bounded_memory_behind(self):
        anna = self.client("anna")

        def attempts(first):
            return b"".join(harness.encode("SET", f"lock:{i}", "t", "NX", "PX", "60000") for i in range(first, first + 10_000))

        before = int(self.memory())
        for first in range(0, 200_000, 10_000):
            anna.send_raw(attempts(first))
            for _ in range(10_000):
                anna.read()
        anna.call("FLUSHALL")
        self.assertLessEqual(len(self.admin.call("LOCK", "LIST")), 10_000)
        self.assertLess(int(self.memory()) - before, 16_000_000)
        self.assert_found()

    def memory(self):
        return dict(line.split(":", 1) for line in self.admin.call("INFO", "memory").split("\r\n") if ":" in line)["used_memory"]

    def test_the_picture_is_readable_in_80_columns_and_as_svg(self):
        anna, bob = self.client("anna"), self.client("bob")
        anna.call("SET", "lock", "a", "NX", "PX", "30000")
        self.advance("10s")
        bob.call("SET", "lock", "b", "NX", "PX", "30000")
        self.advance("30s")
        bob.call("SET", "lock", "b", "NX", "PX", "30000")
        anna.call("DEL", "lock")
        picture = self.admin.call("LOCK", "TIMELINE", "lock")
        self.assertLessEqual(max(map(len, picture.split("\n"))), 80)
        self.assertIn("late-release", picture)
        document = xml.etree.ElementTree.fromstring(self.admin.call("LOCK", "TIMELINE", "lock", "FORMAT", "svg"))
        self.assertEqual(document.tag, "{http://www.w3.org/2000/svg}svg")


if __name__ == "__main__":
    unittest.main()
