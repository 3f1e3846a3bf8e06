"""Requests as bytes: shapes, pieces, and what is answered to those that are none."""

import unittest

import harness


class Requests(harness.ServerTestCase):
    def test_a_request_may_arrive_byte_by_byte(self):
        client = self.connect()
        for byte in harness.encode("SET", "key", "value") + b"GET key\r\n":
            client.send_raw(bytes([byte]))
        self.assertEqual([client.read(), client.read()], ["OK", "value"])

    def test_a_pipeline_is_answered_in_order_however_long_it_is(self):
        client = self.connect()
        count = 20000
        requests = b"".join(harness.encode("SET", "key", i) + harness.encode("GET", "key") for i in range(count))
        half = len(requests) // 2
        client.send_raw(requests[:half])
        client.send_raw(requests[half:])
        for i in range(count):
            self.assertEqual(client.read(), "OK")
            self.assertEqual(client.read(), str(i))


if __name__ == "__main__":
    unittest.main()
