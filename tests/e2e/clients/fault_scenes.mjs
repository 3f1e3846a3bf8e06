// Code under test, with ioredis: node fault_scenes.mjs PORT SCENE prints what became of it as JSON.

import Redis from "ioredis";

const [port, scene] = process.argv.slice(2);
const options = { port: Number(port), retryStrategy: () => 1 };
// ioredis's own way: connect again, and send the request again.
if (scene === "counts_once_loaded_by_connecting_again") {
  options.reconnectOnError = (error) => (error.message.startsWith("LOADING") ? 2 : false);
}

const scenes = {
  // Tries again while the server is loading.
  async counts_once_loaded(redis) {
    for (let tries = 1; ; ++tries) {
      try {
        return await redis.incr("visits");
      } catch (error) {
        if (!error.message.startsWith("LOADING") || tries > 5) throw error;
      }
    }
  },

  async counts_once_loaded_by_connecting_again(redis) {
    return redis.incr("visits");
  },

  // ioredis sends what was not answered again once it is connected again, though it cannot know whether it has run.
  async counts_again_after_a_lost_reply(redis) {
    return redis.incr("visits");
  },
};

const redis = new Redis(options);
redis.on("error", () => {}); // it connects again
console.log(JSON.stringify(await scenes[scene](redis)));
await redis.quit();
