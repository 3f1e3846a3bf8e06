"""Publish and subscribe, through redis-py, redis-cli and bare connections."""

import json
import subprocess
import unittest

import clients
import harness


class Messages(harness.ServerTestCase):
    def subscriber(self, *channels, protocol=2):
        client = self.connect()
        if protocol == 3:
            client.call("HELLO", "3")
        client.send("SUBSCRIBE", *channels)
        for count, channel in enumerate(channels, 1):
            self.assertEqual(client.read(), ["subscribe", channel, count])
        return client

    def test_a_message_reaches_subscribers_of_both_protocols(self):
        old, new = self.subscriber("news"), self.subscriber("news", protocol=3)
        self.assertEqual(self.connect().call("PUBLISH", "news", "rain"), 2)
        for client in (old, new):
            self.assertEqual(client.read(), ["message", "news", "rain"])

    def test_messages_arrive_in_the_order_in_which_they_were_sent(self):
        client, publisher = self.subscriber("news"), self.connect()
        for i in range(2000):
            publisher.send("PUBLISH", "news", i)
        for i in range(2000):
            self.assertEqual(client.read(), ["message", "news", str(i)])

    def test_long_messages_arrive_whole(self):
        text = "x" * 1_000_000
        clients = [self.subscriber("news") for _ in range(3)]
        self.assertEqual(self.connect().call("PUBLISH", "news", text), 3)
        for client in clients:
            self.assertEqual(client.read(), ["message", "news", text])

    def test_a_client_that_waits_for_a_list_receives_messages_meanwhile(self):
        client, other = self.subscriber("news", protocol=3), self.connect()
        client.send("BLPOP", "queue", "0")
        self.eventually(lambda: "blocked_clients:1" in other.call("INFO", "clients"))
        other.call("PUBLISH", "news", "rain")
        self.assertEqual(client.read(), ["message", "news", "rain"])
        other.call("RPUSH", "queue", "job")
        self.assertEqual(client.read(), ["queue", "job"])

    def test_who_leaves_is_forgotten(self):
        asker = self.connect()
        self.subscriber("left").close()
        self.eventually(lambda: asker.call("PUBSUB", "NUMSUB", "left") == ["left", 0])
        self.assertEqual(asker.call("PUBLISH", "left", "x"), 0)

    def test_keys_that_expire_are_told_of(self):
        asker = self.connect()
        asker.call("CONFIG", "SET", "notify-keyspace-events", "Ex")
        client = self.subscriber("__keyevent@0__:expired")
        asker.call("SET", "name", "anna", "PX", "20")
        self.assertEqual(client.read(), ["message", "__keyevent@0__:expired", "name"])
        asker.call("CONFIG", "SET", "notify-keyspace-events", "")


class Limits(harness.ServerTestCase):
    options = {"client-output-buffer-limit": ["pubsub", "1000000", "0", "0"]}

    def test_a_subscriber_that_does_not_read_is_closed_at_its_limit(self):
        asker = self.connect()
        self.connect().call("SUBSCRIBE", "flood")
        text = "x" * 100_000
        for _ in range(1000):
            if asker.call("PUBLISH", "flood", text) == 0:
                break
        self.assertEqual(asker.call("PUBSUB", "NUMSUB", "flood"), ["flood", 0])
        self.assertIn("overcoming of output buffer limits", self.server.log())

    def test_one_script_cannot_fill_memory_through_a_subscriber(self):
        asker = self.connect()
        self.connect().call("SUBSCRIBE", "flood")
        script = "for i = 1, 5000 do redis.call('publish', 'flood', ARGV[1]) end"
        asker.call("EVAL", script, "0", "x" * 10_000)
        self.eventually(lambda: asker.call("PUBSUB", "NUMSUB", "flood") == ["flood", 0])


class RedisPy(harness.ServerTestCase):
    """Scenes of clients/listener.py, played with Debian's python3-redis."""

    def play(self, scene):
        command = ["/usr/bin/python3", str(clients.HERE / "listener.py"), str(self.server.port), scene]
        return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=60).stdout)

    def test_channels_and_patterns(self):
        self.assertEqual(self.play("channels_and_patterns"), [["message", "news", "rain"], ["pmessage", "weather", "sun"]])

    def test_a_thread_listens_until_it_is_told_to_stop(self):
        self.assertEqual(self.play("thread"), ["rain"])

    def test_an_idle_listener_is_asked_whether_it_is_there(self):
        self.assertEqual(self.play("ping"), ["pong", "still there"])


class RedisCli(harness.ServerTestCase):
    def test_redis_cli_prints_what_it_is_sent(self):
        asker = self.connect()
        command = [clients.tool("redis-cli"), "-p", str(self.server.port), "SUBSCRIBE", "news"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as cli:
            try:
                self.assertEqual([cli.stdout.readline().strip() for _ in range(3)], ["subscribe", "news", "1"])
                self.assertEqual(asker.call("PUBLISH", "news", "rain"), 1)
                self.assertEqual([cli.stdout.readline().strip() for _ in range(3)], ["message", "news", "rain"])
            finally:
                cli.kill()


if __name__ == "__main__":
    unittest.main()
