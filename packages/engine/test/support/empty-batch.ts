import type { RunBatch } from "../../src/store/task/run-batch.ts";

/** A batch that changes nothing: tests add the parts they need. */
export const EMPTY_BATCH: RunBatch = {
  jobId: 0,
  hostname: "",
  sender: "test",
  fences: [],
  slots: new Map(),
  maps: [],
  births: [],
  instances: [],
  attempts: [],
  outputs: [],
  signals: [],
  sends: [],
  callbacks: [],
  deliveries: [],
  deferrals: [],
  waitEnds: [],
  ends: [],
  retries: [],
  groups: [],
  drives: [],
  again: [],
  deadLetters: [],
  startSignals: [],
};
