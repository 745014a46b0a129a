/**
 * The DAGs of the storm over signal-driven runs, with the real SDK. Imported by the DAG file that the test writes, so it
 * runs in task processes. Every attempt writes to the ledger, a file that the engine does not use.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { all, type Dag, dag, restart, signal, start, stop, type TaskContext } from "tradewind";
import type { LedgerLine } from "./ledger.ts";
import { record as recordFact } from "./ledger-note.ts";

const [tick, tock, bulk, never] = [signal("tick"), signal("tock"), signal("bulk"), signal("never")];
const [go, halt, renew, over] = [signal("go"), signal("halt"), signal("renew"), signal("over")];

/** Tasks whose every run is accounted for. */
export function countingDag(): Dag {
  return dag("counting", { stop: over }, (d) => {
    const fast = d.task("fast", { pool: "two", on: [start(tick)] }, (_, ctx) => work(ctx, 0));
    d.task("after", { after: [fast] }, (_, ctx) => work(ctx, 0));
    d.task("both", { pool: "two", on: [start(all(tick, tock))] }, (_, ctx) => work(ctx, 5));
    const first = d.task("first", { on: [start(never)] }, () => {});
    // Its starts wait forever and are counted.
    d.task("waiting", { after: [first], on: [start(bulk)] }, () => {});
    d.task("beat", { every: 700 }, (_, ctx) => work(ctx, 0));
  });
}

/** Tasks that are started, restarted, stopped and killed. Sturdy: their processes may be killed at any time. */
export function flowingDag(): Dag {
  return dag("sturdy_flow", { stop: over }, (d) => {
    const on = [restart(renew), stop(halt), start(go)];
    const again = { retries: 1_000_000, retryDelay: 50, maxRetryDelay: 200, grace: "5s" } as const;
    d.task("flow", { lifetime: "streaming", ...again, on }, async (_, ctx) => {
      record(ctx, "start");
      await aborted(ctx.abort);
      record(ctx, "abort");
    });
    const chore = d.task("chore", { ...again, on }, (_, ctx) => work(ctx, 400));
    d.task("tail", { after: [chore], rule: "allDone", ...again }, (_, ctx) => work(ctx, 20));
  });
}

async function work(ctx: TaskContext, ms: number): Promise<void> {
  record(ctx, "start");
  if (ms > 0) await sleep(ms, undefined, { signal: ctx.abort }).catch(() => {});
  record(ctx, ctx.abort.aborted ? "abort" : "end");
  ctx.abort.throwIfAborted();
}

function aborted(abort: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (abort.aborted) resolve();
    else abort.addEventListener("abort", () => resolve(), { once: true });
  });
}

function record(ctx: TaskContext, event: LedgerLine["event"]): void {
  recordFact(ctx, { event, outcome: "success" });
}
