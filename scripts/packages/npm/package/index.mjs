import latchkey from "./index.js";

export const { start, space, binaryPath, LatchkeyError } = latchkey;
