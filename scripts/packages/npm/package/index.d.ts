/** A value of a directive: `true` and `false` are `yes` and `no`, an array is several words. */
export type DirectiveValue = string | number | boolean | readonly (string | number)[];

export interface StartOptions {
  /** The port to listen on; a free one unless given. */
  port?: number | "auto";
  /** A configuration file. Without one the server listens on this machine only, and saves nothing. */
  config?: string;
  /** Directives by name, such as `{ maxmemory: "100mb", emulate: ["redis", "7.0"] }`. They come after the file's, and so count. */
  directives?: Readonly<Record<string, DirectiveValue>>;
  /** The program to run instead of the one that came with this package. */
  binary?: string;
  /** How long the server may take until it is ready, in milliseconds: 30,000 unless given. */
  timeout?: number;
}

export interface Server {
  /** `redis://127.0.0.1:PORT`, with the password if `requirepass` was given. */
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Ends the server, and resolves when it has ended. May be called again. It also ends with this process, however that ends. */
  stop(): Promise<void>;
  /** The URL of a server of its own within this one, made when its first client comes: databases, channels, configuration, clock.
   *  The same name gives the same space; without one each call gives a new space. */
  space(name?: string): string;
}

export interface LatchkeyError extends Error {
  readonly code: "EPLATFORM" | "ENOENT" | "EACCES" | "EADDRINUSE" | "ENOSPC" | "ETIMEDOUT" | "EINVAL" | "ESTART";
}
export const LatchkeyError: { new (code: LatchkeyError["code"], message: string): LatchkeyError };

/** Starts a server and resolves when it takes requests. Rejects with LatchkeyError. */
export function start(options?: StartOptions): Promise<Server>;

/** `Server.space` where only the server's URL is known, as in the threads of a test runner. */
export function space(url: string, name?: string): string;

/** The path of the program, for what starts it itself, such as redis-memory-server's `systemBinary`. Throws LatchkeyError. */
export function binaryPath(): string;
