#!/usr/bin/env node
"use strict";
// Runs the server with the arguments given, on this terminal; ends as it ends.

const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { binaryPath, cannotRun } = require("../platform.js");

function fail(error) {
  console.error(`latchkey-server: ${error.message}`);
  process.exit(1);
}

let program;
try {
  program = binaryPath();
} catch (error) {
  fail(error);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => fail(cannotRun(program, error)));
for (const signal of ["SIGTERM", "SIGHUP", "SIGINT"]) {
  process.on(signal, () => {
    // Ctrl-C on a terminal reaches the server too. Without a terminal SIGINT may be for the process group, and the server have it, or for this
    // process alone. A second SIGINT would end the server at once, without saving; SIGTERM ends it in order, also after a SIGINT.
    if (signal !== "SIGINT") child.kill(signal);
    else if (!process.stdin.isTTY) child.kill("SIGTERM");
  });
}
child.on("exit", (status, signal) => process.exit(signal ? 128 + constants.signals[signal] : status));
