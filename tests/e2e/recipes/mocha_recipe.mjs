import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createClient } from "redis";

const port = process.env.REDIS_PORT ?? 6379;

describe("A session", () => {
  let redis;

  beforeEach(async () => {
    redis = await createClient({ url: `redis://space-${randomUUID()}:x@localhost:${port}` }).connect();
  });

  afterEach(() => redis.close());

  it("ends after half an hour", async () => {
    await redis.set("session:1", "anna", { expiration: { type: "EX", value: 1800 } });
    await redis.sendCommand(["CLOCK", "ADVANCE", "30m"]);
    assert.equal(await redis.get("session:1"), null);
  });

  it("is gone after FLUSHALL, and nobody else's", async () => {
    await redis.set("session:1", "anna");
    await redis.flushAll();
    assert.equal(await redis.get("session:1"), null);
  });
});
