// The clients of locks.py with ioredis: node locks.mjs KIND CONTROL_SOCKET PORTS COUNT
// KIND is "redlock", npm's redlock on the servers at all PORTS (separated by commas), or "redis-semaphore", that library's Mutex.

import { connect } from "node:net";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import Redis from "ioredis";
import semaphores from "redis-semaphore";
import Redlock from "redlock";

const [kind, control, ports, count] = process.argv.slice(2);

const rest = () => setTimeout(2 + 8 * Math.random());

class Locks {
  constructor() {
    this.servers = ports.split(",").map((port) => new Redis(Number(port)));
    for (const server of this.servers) server.on("error", () => {}); // it connects again
    this.held = new Map();
  }

  connections() {
    return Promise.all(this.servers.map((server) => server.client("ID")));
  }

  async work(name, ttl_ms, rounds) {
    const [first] = this.servers;
    for (let round = 0; round < rounds; ++round) {
      while (!(await this.acquire(name, ttl_ms))) await rest();
      await first.set(`${name}:count`, Number(await first.get(`${name}:count`)) + 1);
      await this.release(name);
      await rest();
    }
    return rounds;
  }
}

class Redlocks extends Locks {
  constructor() {
    super();
    // Each try gives back what it got before the next begins: two that hold two servers each would wait for each other otherwise.
    this.redlock = new Redlock(this.servers, { retryCount: 0 });
  }

  async acquire(name, ttl_ms) {
    return this.attempt(async () => this.held.set(name, await this.redlock.acquire([name], ttl_ms)));
  }

  async prolong(name, ttl_ms) {
    return this.attempt(async () => this.held.set(name, await this.held.get(name).extend(ttl_ms)));
  }

  async release(name) {
    return this.attempt(() => this.held.get(name).release());
  }

  // 1 if a majority of the servers agreed.
  async attempt(operation) {
    try {
      await operation();
      return 1;
    } catch (error) {
      if (error.name !== "ExecutionError") throw error;
      return 0;
    }
  }
}

class Mutexes extends Locks {
  // Without refreshInterval nothing but a test prolongs the lock.
  mutex(name, ttl_ms, options) {
    return new semaphores.Mutex(this.servers[0], name, { lockTimeout: ttl_ms, refreshInterval: 0, ...options });
  }

  async acquire(name, ttl_ms) {
    const mutex = this.mutex(name, ttl_ms, { acquireAttemptsLimit: 1, retryInterval: 1 });
    if (!(await mutex.tryAcquire())) return 0;
    this.held.set(name, mutex);
    return 1;
  }

  // By the identifier the library finds a lock that is held already.
  async prolong(name, ttl_ms) {
    const { identifier } = this.held.get(name);
    return Number(await this.mutex(name, ttl_ms, { identifier, acquiredExternally: true }).tryAcquire());
  }

  // The library does not tell whether the lock was still its own.
  async release(name) {
    await this.held.get(name).release();
    return null;
  }
}

const kinds = { redlock: Redlocks, "redis-semaphore": Mutexes };
for (let i = 0; i < Number(count); ++i) {
  const locks = new kinds[kind]();
  const channel = connect(control);
  const answer = async (line) => {
    const [verb, ...words] = JSON.parse(line);
    try {
      return { ok: await locks[verb](...words) };
    } catch (error) {
      return { error: error.message };
    }
  };
  createInterface({ input: channel }).on("line", async (line) => channel.write(JSON.stringify(await answer(line)) + "\n"));
  channel.on("close", () => locks.servers.forEach((server) => server.disconnect()));
}
