// Tests that collide on a server they share, in threads: try copies this file once for each thread. With TRIAL_SPACES=no they do
// share it, and must fail, else they would show nothing.
import Redis from "ioredis";
import { space } from "latchkey-server";
import { afterAll, beforeAll, expect, inject, test } from "vitest";

const ROUNDS = 200;
const url = inject("latchkeyUrl");
const meeting = new Redis(space(url, "meeting"));
const redis = new Redis(process.env.TRIAL_SPACES === "no" ? url : space(url));

beforeAll(async () => {
  await meeting.incr("here");
  while (Number(await meeting.get("here")) < Number(process.env.TRIAL_THREADS)) await new Promise((resolve) => setTimeout(resolve, 5));
});

afterAll(() => {
  meeting.disconnect();
  redis.disconnect();
});

test("all keys are mine", async () => {
  for (let round = 0; round < ROUNDS; round++) {
    await redis.flushall();
    await redis.mset("a", round, "b", round, "c", round);
    expect(await redis.dbsize()).toBe(3);
  }
});

test("the configuration is mine", async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const threshold = String(Math.floor(Math.random() * 1e9));
    await redis.config("SET", "latency-monitor-threshold", threshold);
    expect((await redis.config("GET", "latency-monitor-threshold"))[1]).toBe(threshold);
  }
});
