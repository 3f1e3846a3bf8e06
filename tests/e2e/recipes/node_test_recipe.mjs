import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, afterEach, before, test } from "node:test";
import Redis from "ioredis";

const port = process.env.REDIS_PORT ?? 6379;
const redis = new Redis(`redis://space-${randomUUID()}:x@localhost:${port}`);

before(async () => {
  await redis.mset("user:1", "anna", "user:2", "berta"); // fixtures, loaded once
  await redis.call("CHECKPOINT", "CREATE", "fixtures");
});

afterEach(() => redis.call("CHECKPOINT", "ROLLBACK", "fixtures"));

after(() => redis.quit());

test("a user is deleted", async () => {
  assert.equal(await redis.del("user:1"), 1);
  assert.equal(await redis.dbsize(), 1);
});

test("the next test finds all of them", async () => {
  assert.deepEqual(await redis.mget("user:1", "user:2"), ["anna", "berta"]);
});
