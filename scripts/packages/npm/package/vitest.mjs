// globalSetup for vitest: one server for the whole run, whose URL tests get by inject("latchkeyUrl").
import { start } from "./index.mjs";

export default async function setup(project) {
  const server = await start();
  project.provide("latchkeyUrl", server.url);
  return () => server.stop();
}
