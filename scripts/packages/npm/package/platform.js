"use strict";
// Where the program is: in the package of this platform, which npm installs as an optional dependency.

const { existsSync } = require("node:fs");
const path = require("node:path");

/** An error whose message says what is wrong and what to do. `code` is one of EPLATFORM, ENOENT, EACCES, EADDRINUSE, ENOSPC,
 *  ETIMEDOUT, EINVAL, ESTART. */
class LatchkeyError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "LatchkeyError";
    this.code = code;
  }
}

const packages = Object.keys(require("./package.json").optionalDependencies ?? {});
const platforms = packages.map((name) => name.slice("@latchkey/".length));

/** The path of the program: LATCHKEY_SERVER_BINARY, or that of this platform's package. Throws LatchkeyError. */
function binaryPath() {
  const named = process.env.LATCHKEY_SERVER_BINARY;
  if (named) {
    if (existsSync(named)) return path.resolve(named);
    throw new LatchkeyError("ENOENT", `LATCHKEY_SERVER_BINARY names ${named}, which is not there.`);
  }
  const here = `${process.platform}-${process.arch}`;
  if (!platforms.includes(here)) {
    throw new LatchkeyError(
      "EPLATFORM",
      `latchkey-server has no program for ${here}; there are ${platforms.join(" and ")}. Run it in a Linux container, ` +
        "or build it on this machine and name the program in the environment variable LATCHKEY_SERVER_BINARY.",
    );
  }
  const name = `@latchkey/${here}`;
  let manifest;
  try {
    manifest = require.resolve(`${name}/package.json`);
  } catch {
    throw new LatchkeyError(
      "EPLATFORM",
      `The package ${name}, which holds the program for this platform, is not installed. npm leaves it out with --omit=optional, ` +
        "and when node_modules was copied from a machine of another kind. Remove node_modules and run npm install here, or run " +
        `npm install ${name}@${require("./package.json").version}.`,
    );
  }
  return path.join(path.dirname(manifest), "bin", "latchkey-server");
}

/** The error for a program that could not be run, from what the system said. */
function cannotRun(program, error) {
  if (error.code === "EACCES") {
    return new LatchkeyError(
      "EACCES",
      `${program} may not be executed. Run chmod +x on it; if that does not help, the file system it lies on is mounted noexec.`,
    );
  }
  if (error.code === "ENOENT") {
    return new LatchkeyError("ENOENT", `${program} is not there, or the C library it needs is not. Install latchkey-server again.`);
  }
  return new LatchkeyError("ESTART", `${program} cannot be run: ${error.message}. Is it for another kind of machine than this one?`);
}

module.exports = { LatchkeyError, binaryPath, cannotRun };
