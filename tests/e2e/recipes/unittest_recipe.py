import os
import unittest
import uuid

import redis


class Locks(unittest.TestCase):
    def setUp(self):
        port = os.environ.get("REDIS_PORT", "6379")
        url = f"redis://space-{uuid.uuid4()}:x@localhost:{port}"
        self.mine, self.other = redis.Redis.from_url(url), redis.Redis.from_url(url)
        self.addCleanup(self.mine.close)
        self.addCleanup(self.other.close)

    def test_a_lock_that_ran_out_is_taken_by_the_next(self):
        lock = self.mine.lock("invoice:7", timeout=10)
        self.assertTrue(lock.acquire(blocking=False))
        self.assertFalse(self.other.lock("invoice:7", timeout=10).acquire(blocking=False))
        self.mine.execute_command("CLOCK", "ADVANCE", "11s")
        self.assertTrue(self.other.lock("invoice:7", timeout=10).acquire(blocking=False))
        with self.assertRaises(redis.exceptions.LockNotOwnedError):
            lock.release()


if __name__ == "__main__":
    unittest.main()
