declare module "vitest" {
  export interface ProvidedContext {
    /** The URL of the server that runs beside the tests; `space(inject("latchkeyUrl"))` is a server of one's own in it. */
    latchkeyUrl: string;
  }
}

export default function setup(project: { provide(key: "latchkeyUrl", value: string): void }): Promise<() => Promise<void>>;
