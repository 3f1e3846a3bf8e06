"""Client-side caching, through bare connections of both protocols and redis-cli."""

import subprocess
import unittest

import clients
import harness


class Caches(harness.ServerTestCase):
    def cache(self, *options):
        client = self.connect()
        client.call("HELLO", "3")
        self.assertEqual(client.call("CLIENT", "TRACKING", "ON", *options), "OK")
        return client

    def test_a_cache_is_told_what_to_forget_and_keeps_up(self):
        cache, writer = self.cache(), self.connect()
        for value in range(100):
            writer.call("SET", "name", value)
            if value > 0:
                self.assertEqual(cache.read(), ["invalidate", ["name"]])
            self.assertEqual(cache.call("GET", "name"), str(value))

    def test_messages_stand_between_the_replies_of_a_pipeline(self):
        cache = self.cache()
        for words in (("GET", "a"), ("SET", "a", "1"), ("GET", "a"), ("MULTI",), ("SET", "a", "2"), ("GET", "a"), ("EXEC",)):
            cache.send(*words)
        self.assertEqual(
            [cache.read() for _ in range(9)],
            [None, "OK", ["invalidate", ["a"]], "1", "OK", "QUEUED", "QUEUED", ["OK", "2"], ["invalidate", ["a"]]],
        )

    def test_another_connection_hears_for_a_client_of_the_old_protocol(self):
        ear, reader, writer = self.connect(), self.connect(), self.connect()
        number = ear.call("CLIENT", "ID")
        ear.call("SUBSCRIBE", "__redis__:invalidate")
        self.assertEqual(reader.call("CLIENT", "TRACKING", "ON", "REDIRECT", number), "OK")
        reader.call("MGET", "a", "b")
        writer.call("MSET", "a", "1", "b", "2", "c", "3")
        self.assertEqual(ear.read(), ["message", "__redis__:invalidate", ["a"]])
        self.assertEqual(ear.read(), ["message", "__redis__:invalidate", ["b"]])
        writer.call("FLUSHALL")
        self.assertEqual(ear.read(), ["message", "__redis__:invalidate", None])

    def test_broadcasts_come_by_prefix(self):
        cache, writer = self.cache("BCAST", "PREFIX", "user:"), self.connect()
        writer.call("MSET", "user:2", "b", "user:1", "a", "item:1", "x")
        self.assertEqual(cache.read(), ["invalidate", ["user:1", "user:2"]])

    def test_expired_keys_are_forgotten_in_time(self):
        cache, writer = self.cache(), self.connect()
        writer.call("SET", "name", "anna", "PX", "20")
        cache.call("GET", "name")
        self.assertEqual(cache.read(), ["invalidate", ["name"]])

    def test_a_cache_that_goes_leaves_nothing_behind(self):
        asker = self.connect()
        for _ in range(20):
            cache = self.cache("BCAST", "PREFIX", "a")
            cache.close()
        reader = self.cache()
        for number in range(100):
            reader.call("GET", f"key{number}")
        self.assertIn("tracking_total_keys:100", asker.call("INFO", "stats"))
        reader.close()
        self.eventually(lambda: "tracking_clients:0" in asker.call("INFO", "clients"))
        figures = asker.call("INFO", "stats")
        for figure in ("keys", "items", "prefixes"):
            self.assertIn(f"tracking_total_{figure}:0", figures)

    def test_redis_cli_shows_invalidations(self):
        text = "HELLO 3\nCLIENT TRACKING ON\nGET name\nSET name anna\nPING\n"
        output = subprocess.run(
            [clients.tool("redis-cli"), "-p", str(self.server.port), "--show-pushes", "yes"],
            input=text, stdout=subprocess.PIPE, text=True, timeout=20, check=True,
        ).stdout
        self.assertIn("invalidate\nname", output)


if __name__ == "__main__":
    unittest.main()
