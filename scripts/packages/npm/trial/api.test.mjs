// The package as a program uses it, with ioredis, node-redis and BullMQ.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, copyFileSync, existsSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { Queue, Worker } from "bullmq";
import Redis from "ioredis";
import { LatchkeyError, binaryPath, space, start } from "latchkey-server";
import { createClient } from "redis";
import { RedisMemoryServer } from "redis-memory-server";

const require = createRequire(import.meta.url);
let server;
before(async () => (server = await start()));
after(() => server.stop());

const alive = (pid) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

async function until(condition) {
  for (let i = 0; i < 600; i++) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail("it did not come in 30 s");
}

test("ioredis sets and gets", async () => {
  const redis = new Redis(server.url);
  assert.equal(await redis.set("key", "value"), "OK");
  assert.equal(await redis.get("key"), "value");
  assert.match(await redis.info("server"), /server_name:latchkey/);
  redis.disconnect();
});

test("node-redis sets and gets", async () => {
  const redis = await createClient({ url: server.space("node-redis") }).connect();
  assert.equal(await redis.set("key", "value"), "OK");
  assert.equal(await redis.get("key"), "value");
  redis.destroy();
});

test("a queue of BullMQ hands its job to a worker", async () => {
  const url = new URL(server.space("queue"));
  const connection = { host: url.hostname, port: Number(url.port), username: url.username, password: url.password, maxRetriesPerRequest: null };
  const queue = new Queue("orders", { connection });
  const done = new Promise((resolve) => {
    const worker = new Worker("orders", async (job) => job.data.count + 1, { connection });
    worker.on("completed", (job, result) => resolve({ result, worker }));
  });
  await queue.add("one", { count: 41 });
  const { result, worker } = await done;
  assert.equal(result, 42);
  await worker.close();
  await queue.close();
});

test("spaces have nothing in common, and the same name is the same space", async () => {
  const [one, other, again] = ["one", "other", "one"].map((name) => new Redis(server.space(name)));
  await one.set("key", "of one");
  assert.equal(await other.get("key"), null);
  assert.equal(await again.get("key"), "of one");
  await other.flushall();
  assert.equal(await one.get("key"), "of one");
  for (const redis of [one, other, again]) redis.disconnect();
});

test("a space without a name is a new one, and any name is quoted for the URL", async () => {
  assert.notEqual(server.space(), server.space());
  const redis = new Redis(server.space("a/b:c@d-%"));
  await redis.set("key", "value");
  const main = new Redis(server.url);
  assert.match(JSON.stringify(await main.call("SPACE", "LIST")), /a\/b:c@d-%/);
  redis.disconnect();
  main.disconnect();
});

for (const name of ["", "main", "two words", "grün", "x".repeat(129)]) {
  test(`a space cannot be called ${JSON.stringify(name.slice(0, 12))}`, () => {
    assert.throws(() => server.space(name), { code: "EINVAL", message: /The name of a space has 1 to 128 printable/ });
  });
}

test("a clock moves for its space alone", async () => {
  const redis = new Redis(server.space("clock"));
  await redis.set("session:1", "anna", "EX", 1800);
  await redis.call("CLOCK", "ADVANCE", "30m");
  assert.equal(await redis.get("session:1"), null);
  const main = new Redis(server.url);
  assert.match(JSON.stringify(await main.call("CLOCK")), /"offset",0/);
  redis.disconnect();
  main.disconnect();
});

test("directives, a password among them", async () => {
  const own = await start({ directives: { maxmemory: "50mb", emulate: ["redis", "7.0"], requirepass: "se cret", "lazyfree-lazy-expire": true } });
  const redis = new Redis(own.url);
  assert.deepEqual(await redis.config("GET", "maxmemory", "lazyfree-lazy-expire"), ["maxmemory", "52428800", "lazyfree-lazy-expire", "yes"]);
  assert.match(await redis.info("server"), /redis_version:7\.0/);
  const inside = new Redis(own.space("a"));
  assert.equal(await inside.ping(), "PONG");
  redis.disconnect();
  inside.disconnect();
  await own.stop();
});

test("a configuration file", async () => {
  const file = path.join(mkdtempSync(path.join(tmpdir(), "latchkey-try-")), "server.conf");
  writeFileSync(file, 'databases 3\nsave ""\n');
  const own = await start({ config: file });
  const redis = new Redis(own.url);
  assert.deepEqual(await redis.config("GET", "databases"), ["databases", "3"]);
  redis.disconnect();
  await own.stop();
});

test("stop() ends the process, removes its folder, and may be called again", async () => {
  const folders = () => readdirSync(tmpdir()).filter((name) => /^latchkey-[A-Za-z0-9]{6}$/.test(name)).length;
  const before = folders();
  const own = await start();
  assert.equal(folders(), before + 1);
  await own.stop();
  await own.stop();
  assert.equal(alive(own.pid), false);
  assert.equal(folders(), before);
});

test("CommonJS and ECMAScript modules are one", () => {
  assert.equal(require("latchkey-server").start, start);
});

test("a port in use is said in a sentence", async () => {
  await assert.rejects(start({ port: server.port }), (error) => {
    assert.ok(error instanceof LatchkeyError);
    assert.equal(error.code, "EADDRINUSE");
    assert.match(error.message, new RegExp(`^Port ${server.port} is in use. Leave port out to get a free one`));
    return true;
  });
});

test("a port that is none", async () => {
  await assert.rejects(start({ port: 70000 }), { code: "EINVAL", message: /1 to 65535/ });
});

test("an unknown directive is told by the server's log", async () => {
  await assert.rejects(start({ directives: { nonsense: 1 } }), { code: "ESTART", message: /ended with status 1[^]*nonsense/ });
});

test("a configuration file that is not there is told by what the server logs on standard output", async () => {
  await assert.rejects(start({ config: "/nonexistent/server.conf" }), { code: "ESTART", message: /ended with status 1[^]*open config file '\/nonexistent/ });
});

test("a folder that cannot be made is said in a sentence", async () => {
  const before = process.env.TMPDIR;
  process.env.TMPDIR = "/proc/self";
  try {
    await assert.rejects(start(), { code: "ENOSPC", message: /No folder can be made in \/proc\/self .*Free some space/ });
  } finally {
    process.env.TMPDIR = before;
  }
});

test("a program that may not be executed is said in a sentence", async () => {
  const copy = path.join(mkdtempSync(path.join(tmpdir(), "latchkey-try-")), "latchkey-server");
  copyFileSync(binaryPath(), copy);
  chmodSync(copy, 0o644);
  await assert.rejects(start({ binary: copy }), { code: "EACCES", message: /may not be executed. Run chmod \+x/ });
});

test("a program that is not there, and one for another machine", async () => {
  await assert.rejects(start({ binary: "/nonexistent/latchkey-server" }), { code: "ENOENT", message: /is not there/ });
  const other = path.join(mkdtempSync(path.join(tmpdir(), "latchkey-try-")), "latchkey-server");
  writeFileSync(other, Buffer.concat([Buffer.from("\x7fELF\x02\x01\x01", "latin1"), Buffer.alloc(200, 0xff)]), { mode: 0o755 });
  await assert.rejects(start({ binary: other }), { code: "ESTART", message: /another kind of machine/ });
});

test("a server that is not ready in time is ended", async () => {
  const slow = path.join(mkdtempSync(path.join(tmpdir(), "latchkey-try-")), "latchkey-server");
  writeFileSync(slow, "#!/bin/sh\necho still loading >&2\nexec sleep 60\n", { mode: 0o755 });
  await assert.rejects(start({ binary: slow, timeout: 200 }), { code: "ETIMEDOUT", message: /not ready after 200 ms[^]*still loading/ });
});

test("the server ends with its parent, however that ends, and does not keep it from ending", async () => {
  for (const end of ["process.kill(process.pid, 'SIGKILL')", "undefined"]) {
    const program = `require("latchkey-server").start().then((server) => { console.log(server.pid); ${end}; })`;
    const parent = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "inherit"], cwd: import.meta.dirname ?? "." });
    const [line] = await once(parent.stdout.setEncoding("utf8"), "data");
    await until(() => !alive(Number(line)));
    await until(() => parent.exitCode !== null || parent.signalCode !== null);
  }
});

test("redis-memory-server runs it as its systemBinary", async () => {
  const memory = new RedisMemoryServer({ binary: { systemBinary: binaryPath() } });
  const redis = new Redis(await memory.getPort(), await memory.getHost());
  assert.equal(await redis.set("key", "value"), "OK");
  assert.match(await redis.info("server"), /server_name:latchkey/);
  redis.disconnect();
  assert.equal(await memory.stop(), true);
});

/** The command with so many keys in its server. It leads a process group of its own, and has no terminal. */
async function command(keys, ...directives) {
  const port = Number(process.env.TRIAL_PORT);
  const child = spawn("node_modules/.bin/latchkey-server", ["--port", String(port), "--enable-debug-command", "yes", ...directives], {
    stdio: "ignore",
    detached: true,
  });
  await until(() => new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => resolve(!socket.destroy().connecting)).on("error", () => resolve(false));
  }));
  const redis = new Redis(port);
  assert.equal(await redis.debug("POPULATE", keys), "OK");
  assert.equal(await redis.set("key", "value"), "OK");
  redis.disconnect();
  return child;
}

test("npx latchkey-server takes the server's own arguments, and ends on SIGTERM with status 0", async () => {
  const npx = await command(1, "--save", "");
  npx.kill("SIGTERM");
  assert.deepEqual(await once(npx, "exit"), [0, null]);
});

for (const [whom, sign] of [["the process group", -1], ["the wrapper alone", 1]]) {
  test(`npx latchkey-server saves, and ends with status 0, on a SIGINT to ${whom}`, async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "latchkey-try-"));
    // So many that a second signal comes while the server saves.
    const npx = await command(300_000, "--save", "3600", "1", "--dir", folder, "--rdbcompression", "no");
    process.kill(sign * npx.pid, "SIGINT");
    assert.deepEqual(await once(npx, "exit"), [0, null]);
    assert.ok(existsSync(path.join(folder, "dump.rdb")));
  });
}
