import { randomUUID } from "node:crypto";
import Redis from "ioredis";
import { afterEach, beforeEach, expect, test } from "vitest";

const port = process.env.REDIS_PORT ?? 6379;
let redis;

beforeEach(() => {
  redis = new Redis(`redis://space-${randomUUID()}:x@localhost:${port}`); // each test has a server of its own
});

afterEach(() => redis.quit());

test("a session ends after half an hour", async () => {
  await redis.set("session:1", "anna", "EX", 1800);
  await redis.call("CLOCK", "ADVANCE", "30m");
  expect(await redis.get("session:1")).toBeNull();
});

test("FLUSHALL hurts nobody", async () => {
  await redis.flushall();
  expect(await redis.dbsize()).toBe(0);
});
