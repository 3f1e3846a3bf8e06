// The suite of shared_server_suite.py for vitest with threads: each copy of this file is run by one worker.

import { readdirSync, writeFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import Redis from "ioredis";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";

const { SHARED_PORT, SHARED_WORKERS, SHARED_MEETING, SHARED_SPACES, VITEST_POOL_ID } = process.env;
const user = SHARED_SPACES === "yes" ? `space-vitest-${VITEST_POOL_ID}:x@` : "";
const url = `redis://${user}localhost:${SHARED_PORT}`;
const rounds = 100;
let redis;

beforeAll(async () => {
  writeFileSync(`${SHARED_MEETING}/${VITEST_POOL_ID}`, "");
  while (readdirSync(SHARED_MEETING).length < Number(SHARED_WORKERS)) await setTimeout(1);
}, 60_000);

beforeEach(async () => {
  redis = new Redis(url);
  await redis.flushall();
});

afterEach(() => redis.quit());

test("all keys are mine", async () => {
  for (let round = 0; round < rounds; ++round) {
    await redis.flushall();
    await redis.mset("a", 1, "b", 2, `worker:${VITEST_POOL_ID}`, 3);
    expect(await redis.dbsize()).toBe(3);
  }
}, 60_000);

test("the configuration is mine", async () => {
  for (let round = 0; round < rounds; ++round) {
    const threshold = String(Number(VITEST_POOL_ID) * rounds + round);
    await redis.config("SET", "latency-monitor-threshold", threshold);
    expect(await redis.config("GET", "latency-monitor-threshold")).toEqual(["latency-monitor-threshold", threshold]);
  }
}, 60_000);

test("all messages are for me", async () => {
  const listener = new Redis(url);
  const heard = [];
  listener.on("message", (_, message) => heard.push(message));
  await listener.subscribe("news");
  const said = [];
  for (let round = 0; round < rounds; ++round) {
    said.push(`${VITEST_POOL_ID}:${round}`);
    expect(await redis.publish("news", said.at(-1))).toBe(1);
  }
  await listener.quit(); // its reply comes behind all messages
  expect(heard).toEqual(said);
}, 60_000);
