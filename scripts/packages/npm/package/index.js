"use strict";
// Starts a server for tests and ends it. Each server is a process of its own, on a free port, that ends with this one.

const { spawn } = require("node:child_process");
const { randomUUID } = require("node:crypto");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { LatchkeyError, binaryPath, cannotRun } = require("./platform.js");

const START_TIMEOUT_MS = 30_000;
// The server finishes what it writes before it ends; after this it is killed.
const STOP_TIMEOUT_MS = 10_000;

const directories = new Set();
process.on("exit", () => {
  for (const directory of directories) fs.rmSync(directory, { recursive: true, force: true });
});

/** URL of the space `name` of the server at `url`. */
function space(url, name = randomUUID()) {
  if (typeof name !== "string" || !/^[!-~]{1,128}$/.test(name) || name.toLowerCase() === "main") {
    throw new LatchkeyError(
      "EINVAL",
      `The name of a space has 1 to 128 printable ASCII characters, no blanks, and is not "main"; this one is ${JSON.stringify(name)}.`,
    );
  }
  const place = new URL(url);
  if (place.protocol !== "redis:" && place.protocol !== "rediss:") {
    throw new LatchkeyError("EINVAL", `The URL of a space needs a host and a port; ${url} has none.`);
  }
  const password = place.password || "x"; // any will do where the server has none
  return `${place.protocol}//space-${encodeURIComponent(name)}:${password}@${place.host}${place.pathname}${place.search}`;
}

function words(value) {
  if (value === true) return ["yes"];
  if (value === false) return ["no"];
  return Array.isArray(value) ? value.map(String) : [String(value)];
}

/** The command line; what the caller says comes last and so counts. */
function argumentsOf({ port = "auto", config, directives = {} }, directory) {
  if (port !== "auto" && !(Number.isInteger(port) && port >= 1 && port <= 65535)) {
    throw new LatchkeyError("EINVAL", `port is a number from 1 to 65535 or "auto"; this one is ${JSON.stringify(port)}.`);
  }
  const defaults = config ? { port } : { port, bind: ["127.0.0.1", "-::1"], save: "", dir: directory };
  const line = config ? [path.resolve(config)] : [];
  const own = { "print-url": true, "exit-with-parent": true };
  for (const [name, value] of Object.entries({ ...defaults, ...directives, ...own })) line.push(`--${name}`, ...words(value));
  return line;
}

/** Whether the program is for another processor. The system then has a shell try to read it, so no error of exec tells. */
function isForeign(program) {
  const header = Buffer.alloc(20);
  try {
    const file = fs.openSync(program, "r");
    fs.readSync(file, header);
    fs.closeSync(file);
  } catch {
    return false; // it may be executed, but not read
  }
  const machines = { x64: 62, arm64: 183 }; // e_machine of ELF
  return header.toString("latin1", 0, 4) === "\x7fELF" && header.readUInt16LE(18) !== machines[process.arch];
}

/** The error for a server that ended before it was ready. */
function couldNotStart(program, status, signal, log, port) {
  if (isForeign(program)) return cannotRun(program, new Error("the system cannot execute it"));
  const said = log.trim().split("\n").slice(-8).join("\n");
  if (/Address already in use/.test(log)) {
    return new LatchkeyError("EADDRINUSE", `Port ${port} is in use. Leave port out to get a free one, or end the program that has it. The server's log:\n${said}`);
  }
  if (/bind: Permission denied/.test(log)) {
    return new LatchkeyError("EACCES", `Port ${port} is not for this user: ports below 1024 need root. Leave port out to get a free one. The server's log:\n${said}`);
  }
  if (signal === "SIGILL") {
    return new LatchkeyError("ESTART", "This processor lacks instructions the server is built with (x86-64-v2, of 2009).");
  }
  const end = signal ? `was ended by ${signal}` : `ended with status ${status}`;
  return new LatchkeyError("ESTART", `The server ${end} before it was ready. Its log:\n${said || "(empty)"}`);
}

/** Resolves to the URL, a line of standard output. The server logs there too until it has read its directives. */
function ready(child, log, port, timeout) {
  return new Promise((resolve, reject) => {
    let output = "";
    let timer;
    const logged = () => output + fs.readFileSync(log, "utf8");
    const settle = (outcome) => {
      clearTimeout(timer);
      for (const event of ["error", "close"]) child.removeAllListeners(event);
      child.on("error", () => {}); // it has been told, or comes from a signal to a process that has ended
      child.stdout?.removeAllListeners("data");
      if (outcome instanceof Error) reject(outcome);
      else resolve(outcome);
    };
    timer = setTimeout(() => {
      child.kill("SIGKILL");
      settle(new LatchkeyError("ETIMEDOUT", `The server was not ready after ${timeout} ms, and was ended. Its log:\n${logged()}`));
    }, timeout);
    child.on("error", (error) => settle(cannotRun(child.spawnfile, error)));
    child.on("close", (status, signal) => settle(couldNotStart(child.spawnfile, status, signal, logged(), port)));
    child.stdout?.setEncoding("utf8").on("data", (text) => {
      output += text;
      const url = /^((?:rediss?|unix):\/\/.*)\n/m.exec(output)?.[1];
      if (url) settle(url);
    });
  });
}

function withPassword(url, password) {
  return password ? url.replace("redis://", `redis://:${encodeURIComponent(password)}@`) : url;
}

/** A new folder for the log, and for what the server may be told to save. */
function temporaryDirectory() {
  try {
    return fs.mkdtempSync(path.join(os.tmpdir(), "latchkey-"));
  } catch (error) {
    throw new LatchkeyError(
      "ENOSPC",
      `No folder can be made in ${os.tmpdir()} (${error.message}). Free some space there, or name another place in the environment variable TMPDIR.`,
    );
  }
}

async function start(options = {}) {
  const program = options.binary ?? binaryPath();
  const directory = temporaryDirectory();
  directories.add(directory);
  const forget = () => {
    fs.rmSync(directory, { recursive: true, force: true });
    directories.delete(directory);
  };

  let child;
  const log = path.join(directory, "log");
  const errors = fs.openSync(log, "a");
  try {
    child = spawn(program, argumentsOf(options, directory), { stdio: ["ignore", "pipe", errors] });
    const url = withPassword(await ready(child, log, options.port, options.timeout ?? START_TIMEOUT_MS), options.directives?.requirepass);
    // Nothing of it keeps this process from ending; the server then ends by itself.
    child.unref();
    child.stdout.destroy();
    const ended = new Promise((resolve) => child.once("exit", resolve));
    let stopping;
    const stop = () =>
      (stopping ??= (async () => {
        child.ref();
        const timer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
        if (child.exitCode === null && child.signalCode === null) {
          child.kill("SIGTERM");
          await ended;
        }
        clearTimeout(timer);
        forget();
      })());
    const server = { url, port: Number(new URL(url).port), pid: child.pid, stop, space: (name) => space(url, name) };
    if (Symbol.asyncDispose) server[Symbol.asyncDispose] = stop;
    return server;
  } catch (error) {
    forget();
    throw error;
  } finally {
    fs.closeSync(errors);
  }
}

module.exports = { start, space, binaryPath, LatchkeyError };
