const threads = Number(process.env.TRIAL_THREADS);

export default {
  test: { globalSetup: ["latchkey-server/vitest"], pool: "threads", poolOptions: { threads: { minThreads: threads, maxThreads: threads } } },
};
