// Checked by tsc, never run.
import latchkey = require("latchkey-server");

latchkey.start({ binary: latchkey.binaryPath(), timeout: 1000 }).then((server) => server.port.toFixed());
// @ts-expect-error: the name is a string
latchkey.space("redis://localhost:6379", 7);
