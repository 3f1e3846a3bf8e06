"""What the values of every type go through on their way to other servers, and back: files, payloads, the replication stream.

    class Lists(values.ValuesTestCase):
        programs = [harness.reference("redis-server")]

        def fill(self, client):
            client.call("RPUSH", "numbers", "1", "2")

        def change(self, client):
            client.call("LPOP", "numbers")

        def described(self, server):
            with server.connect() as client:
                return client.call("LRANGE", "numbers", "0", "-1")
"""

import harness

# Behind a payload's value: the version of RDB and a checksum.
FOOTER_SIZE = 10


class ValuesTestCase(harness.ServersTestCase):
    maxDiff = 4000
    # Who writes and reads beside this server; None is nobody.
    programs = []

    def fill(self, client):
        """Makes values, the same in each server."""
        raise NotImplementedError

    def change(self, client):
        """Changes what fill() has made, the same in each server."""
        raise NotImplementedError

    def described(self, server):
        """All that the values hold and say, in any form that can be compared."""
        raise NotImplementedError

    def assert_same(self, ours, theirs):
        self.assertEqual(ours, theirs)

    def pairs(self):
        """A program that writes and one that reads; one of them, or both, is this server."""
        yield None, None
        for program in filter(None, self.programs):
            yield None, program
            yield program, None

    def carry(self, writer, reader, keys=None):
        """Restores payloads of `keys`, or all, in another server."""
        with writer.connect(binary=True) as source, reader.connect(binary=True) as target:
            for key in keys or source.call("KEYS", "*"):
                self.assertEqual(target.call("RESTORE", key, "0", source.call("DUMP", key)), b"OK")

    def test_a_file_is_read_by_the_other_server(self):
        for first, second in self.pairs():
            with self.subTest(first=first, second=second):
                writer, client = self.server(first)
                self.fill(client)
                # Before the values are described: saving may put them in order.
                self.assertEqual(client.call("SAVE"), "OK")
                reader, other = self.server(second, dir=writer.directory, dbfilename="dump.rdb")
                self.assert_same(self.described(reader), self.described(writer))
                self.change(client)
                self.change(other)
                self.assert_same(self.described(reader), self.described(writer))

    def test_a_payload_is_restored_by_the_other_server(self):
        for first, second in self.pairs():
            with self.subTest(first=first, second=second):
                writer, client = self.server(first)
                reader, _ = self.server(second)
                self.fill(client)
                self.carry(writer, reader)
                self.assert_same(self.described(reader), self.described(writer))

    def test_replicas_follow(self):
        for first, second in self.pairs():
            with self.subTest(first=first, second=second):
                master, client = self.server(first)
                replica, other = self.server(second)
                self.fill(client)
                self.follow(other, master)
                self.change(client)
                client.call("SET", "end", "1")
                self.eventually(lambda: other.call("GET", "end") == "1")
                self.assert_same(self.described(replica), self.described(master))

    def test_an_append_only_file_keeps_them(self):
        for preamble in ("yes", "no"):
            with self.subTest(preamble=preamble):
                server, client = self.server(appendonly="yes", aof_use_rdb_preamble=preamble)
                self.fill(client)
                self.reloads_alike(server, client)
                self.rewrite_append_only_file(client)
                self.change(client)
                self.reloads_alike(server, client)

    def reloads_alike(self, server, client):
        """Reads the append-only file again, which must make the same values."""
        before = self.described(server)
        digest = client.call("DEBUG", "DIGEST")
        client.call("DEBUG", "LOADAOF")
        self.assert_same(self.described(server), before)
        self.assertEqual(client.call("DEBUG", "DIGEST"), digest)
