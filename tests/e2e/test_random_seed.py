"""random-seed between processes: what chance decides in one is decided alike in another one of the same seed."""

import re
import unittest

import harness

KEYS = 600  # more than a listpack holds


def transcript(**options):
    """The bytes that a server answers to requests of all kinds that chance has a part in."""
    server = harness.Server(**options)
    try:
        with server.connect() as client:
            requests = []
            for i in range(KEYS):
                requests += [("SET", "key%d" % i, i), ("SADD", "set", "m%d" % i), ("HSET", "hash", "f%d" % i, i),
                             ("ZADD", "zset", i, "z%d" % i)]
            requests += [("KEYS", "*"), ("SCAN", "0", "COUNT", "100"), ("SMEMBERS", "set"), ("HGETALL", "hash"),
                         ("SRANDMEMBER", "set", "-30"), ("SPOP", "set", "30"), ("HRANDFIELD", "hash", "30"),
                         ("ZRANDMEMBER", "zset", "-30"), ("RANDOMKEY",), ("SPOP", "set"), ("ACL", "GENPASS"),
                         ("EVAL", "return tostring(math.random())", "0")]
            for request in requests:
                client.send(*request)
            replies = [client.read() for _ in requests]
            info = client.call("INFO", "everything")
            ids = [re.search("^%s:(.*?)\r$" % name, info, re.MULTILINE).group(1)
                   for name in ("run_id", "master_replid", "random_seed")]
            return replies, ids
    finally:
        server.stop()


class RandomSeed(unittest.TestCase):
    def test_two_processes_of_one_seed_answer_the_same(self):
        one = transcript(random_seed="12345")
        self.assertTrue(one == transcript(random_seed="12345"))
        self.assertEqual(one[1][2], "12345")
        replies, ids = transcript(random_seed="54321")
        self.assertNotEqual(one[1][0], ids[0])
        for name, mine, others in zip(("KEYS", "SCAN", "SMEMBERS", "HGETALL", "SRANDMEMBER", "SPOP", "HRANDFIELD", "ZRANDMEMBER"),
                                      one[0][4 * KEYS:], replies[4 * KEYS:]):
            self.assertFalse(mine == others, name)

    def test_a_run_without_a_seed_can_be_repeated_by_the_one_that_info_shows(self):
        replies, ids = transcript()
        again, their_ids = transcript(random_seed=ids[2])
        kinds = len(replies)
        genpass = kinds - 2
        self.assertNotEqual(replies[genpass], again[genpass])
        self.assertNotEqual(ids[0], their_ids[0])
        self.assertTrue(replies[:genpass] + replies[genpass + 1:] == again[:genpass] + again[genpass + 1:])

    def test_values_that_are_no_seed_are_refused(self):
        server = harness.Server()
        self.addCleanup(server.stop)
        with server.connect() as client:
            for wrong in ("-1", "9223372036854775808", "seed", ""):
                self.assertIn("CONFIG SET failed (possibly related to argument 'random-seed')",
                              client.error_of("CONFIG", "SET", "random-seed", wrong))
            self.assertEqual(client.call("CONFIG", "SET", "random-seed", "9223372036854775807"), "OK")
