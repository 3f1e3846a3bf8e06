// Checked by tsc, never run: the key that globalSetup provides is known to inject.
import "latchkey-server/vitest";
import { inject } from "vitest";

const url: string = inject("latchkeyUrl");
// @ts-expect-error: nobody provides this
inject("latchkeyUri");
console.log(url);
