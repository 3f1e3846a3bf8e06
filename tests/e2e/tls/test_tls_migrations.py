"""CLUSTER MIGRATESLOTS over TLS, between us and Valkey 9 both ways. Skipped where scripts/reference --rival has not brought Valkey."""

import os
import re
import signal
import time
import unittest

import test_valkey_migrations
from test_tls import Certificates, SecureServer, options
from test_valkey_cluster import PRODUCTS


def tearDownModule():
    Certificates.forget()


class Migrations(test_valkey_migrations.MigrationsTestCase):
    def start(self, program, **own):
        server = SecureServer(program=program, tls_cluster="yes", tls_replication="yes", **options(**own))
        return server, server.tls_port

    def test_between_two_nodes(self):
        self.check(PRODUCTS[0], PRODUCTS[0])

    def test_to_valkey_and_back(self):
        self.check(PRODUCTS[0], PRODUCTS[1])

    def test_from_valkey_and_back(self):
        self.check(PRODUCTS[1], PRODUCTS[0])

    def test_slots_that_are_large(self):
        """What the target does not take waits in the child, so the source serves, and does not grow."""
        source, target = self.nodes_of(PRODUCTS[0], PRODUCTS[0])
        with source.connect() as client, target.connect() as other:
            for i in range(40):
                client.call("SET", "{06S}%d" % i, "%02d" % i * 500_000)
            used = self.memory(client)
            client.call("CLUSTER", "MIGRATESLOTS", "SLOTSRANGE", "0", "0", "NODE", self.identity(target))
            # The target stands still.
            other.send("DEBUG", "SLEEP", "2")
            most = 0
            for i in range(100):
                self.assertEqual(client.call("SET", "{06S}written", i), "OK")
                most = max(most, self.memory(client))
                time.sleep(0.01)
            self.assertEqual(other.read(), "OK")
            self.assertLess(most - used, 10_000_000)
            self.assertEqual(self.ended(source)["state"], "success")
            self.assertEqual([other.call("GET", "{06S}%d" % i) == "%02d" % i * 500_000 for i in range(40)], [True] * 40)
            self.assertEqual(other.call("GET", "{06S}written"), "99")

    def memory(self, client):
        return int(re.search(r"used_memory:(\d+)", client.call("INFO", "memory"))[1])

    def test_a_cancelled_migration_leaves_nothing_behind(self):
        source, target = self.begin_slowly(PRODUCTS[0], PRODUCTS[0])
        with source.connect() as client:
            self.assertEqual(client.call("CLUSTER", "CANCELSLOTMIGRATIONS"), "OK")
        self.assertEqual(self.ended(source)["state"], "cancelled")
        self.assertEqual(self.ended(target)["state"], "failed")
        self.check_nothing_came(source, target)

    def test_the_target_is_killed(self):
        source, target = self.begin_slowly(PRODUCTS[0], PRODUCTS[0])
        self.kill(target)
        self.assertEqual(self.ended(source)["state"], "failed")

    def test_the_child_is_killed(self):
        source, target = self.begin_slowly(PRODUCTS[0], PRODUCTS[0])
        os.kill(int(re.search(r"snapshot started by pid (\d+)", source.log())[1]), signal.SIGKILL)
        self.assertEqual([self.ended(source)[field] for field in ("state", "message")], ["failed", "Failed to send the snapshot of the slots"])
        self.assertEqual(self.ended(target)["state"], "failed")
        self.check_nothing_came(source, target)


if __name__ == "__main__":
    unittest.main()
