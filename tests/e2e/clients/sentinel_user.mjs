// Writes to the master that Sentinels name, through one of Node's libraries, until there is another master.
//
//   node sentinel_user.mjs ioredis|redis PORT...        the ports of the Sentinels
//
// Prints "ready" when it has found the first master, and ends when it has written to another.
const [library, ...ports] = process.argv.slice(2);
const sentinels = ports.map((port) => ({ host: "127.0.0.1", port: Number(port) }));

async function connect() {
  if (library === "ioredis") {
    const { default: Redis } = await import("ioredis");
    const client = new Redis({ sentinels, name: "mymaster", maxRetriesPerRequest: null });
    client.on("error", () => {});
    return client;
  }
  const { createSentinel } = await import("redis");
  const group = createSentinel({ name: "mymaster", sentinelRootNodes: sentinels, scanInterval: 500 });
  group.on("error", () => {});
  await group.connect();
  return { set: (key, value) => group.set(key, value), info: () => group.use((client) => client.info("server")) };
}

const client = await connect();
const master = async () => /tcp_port:(\d+)/.exec(await client.info("server"))[1];
const first = await master();
console.log("ready");
for (;;) {
  try {
    // Asked before it writes: what the first master takes right before it ends may be in no replica.
    const current = await master();
    await client.set("written", "1");
    if (current !== first) process.exit(0);
  } catch {
    // The master is gone: the library looks for the next one.
  }
  await new Promise((resolve) => setTimeout(resolve, 50));
}
