// Checked by tsc, never run.
import { LatchkeyError, binaryPath, space, start, type Server, type StartOptions } from "latchkey-server";

const options: StartOptions = { port: "auto", directives: { maxmemory: "1mb", databases: 3, appendonly: false, emulate: ["redis", "7.0"] } };
const server: Server = await start(options);
const url: string = server.space();
const other: string = space(server.url, "name");
const path: string = binaryPath();
await server.stop();
try {
  await start({ port: 7000 });
} catch (error) {
  if (error instanceof LatchkeyError && error.code === "EADDRINUSE") console.log(error.message, url, other, path);
}
// @ts-expect-error: a port is a number or "auto"
await start({ port: "7000" });
// @ts-expect-error: there is no such option
await start({ directive: {} });
// @ts-expect-error: it is a promise
start().url;
