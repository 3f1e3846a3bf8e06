"""A worker of a consumer group: python3 group_worker.py PORT NAME WAY_OF_CLAIMING [stop].

Takes entries of the stream `orders` as a member of the group `workers`, counts each in the hash `done` and acknowledges it. When
nothing new comes it claims what others have held for too long: by XAUTOCLAIM or by XPENDING and XCLAIM. Ends when all that the
key `expected` asks for is done and nothing is pending. With `stop` it hangs in the middle of its work and says so in the list
`stopped`.
"""

import signal
import sys

import redis

STREAM = "orders"
GROUP = "workers"
BATCH = 10
HELD_TOO_LONG_MS = 100
WAIT_MS = 20


class GroupWorker:
    def __init__(self, port, name, claim, stops):
        self.client = redis.Redis(port=port, decode_responses=True)
        self.name = name
        self.claim = {"xautoclaim": self.claim_by_scan, "xclaim": self.claim_by_list}[claim]
        self.stops = stops

    def run(self):
        while not self.all_is_done():
            new = self.client.xreadgroup(GROUP, self.name, {STREAM: ">"}, count=BATCH, block=WAIT_MS)
            if new:
                ((_, entries),) = new
                self.work(entries)
            else:
                claimed = self.claim()
                if claimed:
                    self.client.sadd("claimed", *(entry_id for entry_id, _ in claimed))
                self.work(claimed)

    def all_is_done(self):
        expected = self.client.get("expected")
        if expected is None or self.client.hlen("done") < int(expected):
            return False
        return self.client.xpending(STREAM, GROUP)["pending"] == 0

    def claim_by_scan(self):
        cursor, claimed = "0-0", []
        while True:
            cursor, entries, _ = self.client.xautoclaim(STREAM, GROUP, self.name, HELD_TOO_LONG_MS, cursor, BATCH)
            claimed += entries
            if cursor == "0-0":
                return claimed

    def claim_by_list(self):
        held = self.client.xpending_range(STREAM, GROUP, "-", "+", BATCH, idle=HELD_TOO_LONG_MS)
        if not held:
            return []
        return self.client.xclaim(STREAM, GROUP, self.name, HELD_TOO_LONG_MS, [entry["message_id"] for entry in held])

    def work(self, entries):
        for number, (entry_id, _) in enumerate(entries):
            if self.stops and len(entries) == BATCH and number == BATCH // 2:
                self.client.rpush("stopped", self.name)
                signal.pause()
            self.client.hincrby("done", entry_id)
            self.client.xack(STREAM, GROUP, entry_id)


if __name__ == "__main__":
    GroupWorker(int(sys.argv[1]), sys.argv[2], sys.argv[3], "stop" in sys.argv[4:]).run()
