/**
 * The DAG of the storm of remote execution, imported by its DAG file, so that it runs in task processes. The result of a
 * task is the attempt that made it, with the attempts whose results it has read.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Dag, dag, type TaskContext } from "tradewind";
import { record } from "../ledger-note.ts";

export interface Made {
  readonly attempt: string;
  readonly from: readonly string[];
}

export const STORM_DAG = "storm";
/** Longer than the lease of a scheduler. */
export const LONG_MS = 4_500;

export function stormDag(): Dag {
  const options = { retries: 3, retryDelay: "50ms" } as const;
  return dag(STORM_DAG, { maxActiveRuns: 1_000 }, (d) => {
    const first = d.task("first", options, perform);
    const left = d.task("left", { ...options, inputs: { first } }, perform);
    const right = d.task("right", { ...options, inputs: { first } }, perform);
    d.task("last", { ...options, inputs: { left, right } }, perform);
  });
}

/** Its tasks and what they read. */
export const UPSTREAM: Readonly<Record<string, readonly string[]>> = {
  first: [],
  left: ["first"],
  right: ["first"],
  last: ["left", "right"],
};

/** How many tries the task has, all but the last of which fail. A function of the ids, so losses do not change it. */
export function triesOf(run: string, task: string): number {
  return task === "right" && numberOf(run) % 5 === 0 ? 2 : 1;
}

/** Its run changes owners while it is running. */
export function isLong(run: string, task: string): boolean {
  return task === "left" && numberOf(run) % 3 === 0;
}

function workMs(run: string, task: string): number {
  if (isLong(run, task)) return LONG_MS;
  return task === "left" ? 100 + ((numberOf(run) * 37) % 300) : 20;
}

function numberOf(run: string): number {
  return Number(run.slice("run_".length));
}

async function perform(inputs: unknown, ctx: TaskContext): Promise<Made> {
  const { id } = ctx.run;
  const outcome = ctx.tryNumber < triesOf(id, ctx.taskId) ? "failure" : "success";
  record(ctx, { event: "start", outcome });
  try {
    await sleep(workMs(id, ctx.taskId), undefined, { signal: ctx.abort });
  } catch (error) {
    record(ctx, { event: "abort", outcome });
    throw error;
  }
  record(ctx, { event: "end", outcome });
  if (outcome === "failure") throw new Error("scripted");
  const from = Object.values(inputs as Readonly<Record<string, Made>>).map(({ attempt }) => attempt);
  return { attempt: ctx.attempt, from };
}
