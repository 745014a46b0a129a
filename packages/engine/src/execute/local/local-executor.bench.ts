/**
 * Measures the cost of the executor: `node --conditions=source local-executor.bench.ts`. No database, no SDK; the tasks
 * do nothing.
 */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { LogFolder } from "../../log/log-folder.ts";
import { silentLogger } from "../../service/logger.ts";
import { answerFrom } from "../attempt/answer-request.ts";
import type { AttemptAssignment, ExecutorEvent } from "../contract.ts";
import { LocalExecutor } from "./local-executor.ts";

const PROGRAM_SOURCE = `export default { [Symbol.for("tradewind.program")]: {
  protocol: 1,
  describe: () => ({ dagId: "bench" }),
  run: async () => ({ kind: "success", output: undefined, skip: [] }),
  callback: async () => ({ ok: true }),
} };`;

const dir = await mkdtemp(join(tmpdir(), "tradewind-bench-"));
const bundlePath = join(dir, "bench.mjs");
await writeFile(bundlePath, PROGRAM_SOURCE);
let serial = 0;

const children = Number(process.argv[2] ?? 4);
const warm = await open(children);
await warm.fill(2_000);
const before = process.cpuUsage();
const from = performance.now();
const tasks = 10_000;
await warm.fill(tasks);
const ms = performance.now() - from;
const cpu = process.cpuUsage(before);
console.log(`${tasks} no-ops, ${children} processes: ${Math.round((tasks / ms) * 1000)} tasks/s`);
console.log(
  `main process: ${(cpu.user / tasks).toFixed(1)} us user + ${(cpu.system / tasks).toFixed(1)} us system per task`,
);

const chainFrom = performance.now();
for (let at = 0; at < 1_000; at++) await warm.one();
console.log(`one after another: ${((performance.now() - chainFrom) / 1_000).toFixed(3)} ms per task`);
await warm.executor.stop(1_000);

const fresh = await open(0);
await fresh.one();
const freshFrom = performance.now();
for (let at = 0; at < 20; at++) await fresh.one();
console.log(`a fresh process each: ${((performance.now() - freshFrom) / 20).toFixed(1)} ms per task`);
await fresh.executor.stop(1_000);
await rm(dir, { recursive: true });

async function open(parallelism: number) {
  const services = {
    output: async () => undefined,
    variable: async () => undefined,
    connection: async () => undefined,
    signals: async () => [],
    recall: async () => ({}),
    remember: async () => {},
    check: async () => undefined,
    send: async () => ({ version: 1 }),
    triggerRun: async () => ({ runId: "", created: false }),
    runEnd: async () => null,
    isLatest: async () => true,
  };
  const executor = new LocalExecutor({
    parallelism,
    answer: answerFrom(services),
    bundles: { known: (hash) => hash, path: async (hash) => hash },
    logs: new LogFolder(dir),
    logger: silentLogger,
  });
  let onEnded: () => void = () => {};
  await executor.start((event: ExecutorEvent) => {
    if (event.type === "ended") onEnded();
  });
  return {
    executor,
    /** As a scheduler does it: submits as many as `freeSlots` allows. */
    fill: (count: number) =>
      new Promise<void>((resolve) => {
        let submitted = 0;
        let ended = 0;
        const more = (): void => {
          const room = Math.min(executor.freeSlots(), count - submitted);
          submitted += room;
          if (room > 0) executor.submit(Array.from({ length: room }, assignment));
        };
        onEnded = () => (++ended === count ? resolve() : more());
        more();
      }),
    one: () =>
      new Promise<void>((resolve) => {
        onEnded = resolve;
        executor.submit([assignment()]);
      }),
  };
}

function assignment(): AttemptAssignment {
  const id = `attempt-${++serial}`;
  return {
    kind: "attempt",
    id,
    queue: "default",
    priority: 1,
    dagRunId: 1,
    taskId: "noop",
    mapIndex: -1,
    tryNumber: 1,
    maxTries: 0,
    bundleHash: bundlePath,
    resumePoint: null,
    elapsedMs: 0,
    inputs: {},
    run: {
      dagId: "bench",
      runId: "manual__2026-01-01T00:00:00Z",
      runType: "manual",
      logicalDate: "2026-01-01T00:00:00Z",
      intervalStart: null,
      intervalEnd: null,
      runAfter: "2026-01-01T00:00:00Z",
      startedAt: null,
      version: 1,
    },
    conf: {},
    timeoutMs: null,
    memoryMb: null,
    isolation: "warm",
    logKey: `${id}.log`,
  };
}
