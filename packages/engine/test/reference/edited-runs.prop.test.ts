/**
 * Random edits of real runs. `TRADEWIND_EDIT_HISTORIES` is the number of histories, `TRADEWIND_EDIT_SEED` the first one:
 * `TRADEWIND_EDIT_SEED=17 TRADEWIND_EDIT_HISTORIES=1` runs the DAG and the edits of history 17 again.
 */
import { beforeAll, expect, test, vi } from "vitest";
import { SchedulerRig } from "../support/scheduler-rig.ts";
import { editedDag, preamble } from "./edited-dags.ts";
import { EditedHistory } from "./edited-runs.ts";

const HISTORIES = Number(process.env.TRADEWIND_EDIT_HISTORIES ?? 24);
const FIRST = Number(process.env.TRADEWIND_EDIT_SEED ?? 0);
/** Concurrent histories. The scheduler has fewer slots, so edits also meet tasks that are about to begin. */
const AT_ONCE = 4;
const SLOTS = 2;
const EDITS = 3;

vi.setConfig({ testTimeout: 60_000 + HISTORIES * 10_000 });

let rig: SchedulerRig;
const seeds = Array.from({ length: HISTORIES }, (_, n) => FIRST + n);

beforeAll(async () => {
  rig = await SchedulerRig.open();
  const dags = seeds.map((seed) => editedDag(seed).source);
  await rig.publish({ "edited.ts": [preamble(rig.root), ...dags].join("\n") });
  await rig.triggerer();
  // A streaming task keeps its slot until it is stopped; each history has at most one.
  await rig.scheduler({
    parallelism: SLOTS,
    settings: { TRADEWIND_STREAMING_SLOTS: String(AT_ONCE) },
  });
});

test(`a run that succeeds after random edits has run every task that its rules demand: ${HISTORIES} histories`, async ({
  task,
}) => {
  const retry = task.result?.retryCount ?? 0;
  const histories = seeds.map((seed) => new EditedHistory(rig, editedDag(seed), seed, retry));
  const waiting = [...histories];
  const failures: string[] = [];
  const live = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift())
      await next.live(EDITS).catch((error: Error) => failures.push(error.message));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, live));
  expect(failures, failures.join("\n\n")).toEqual([]);
  expect(histories.every(({ editCount }) => editCount >= EDITS)).toBe(true);
  await rig.until(() => rig.poolsAreExact(), "exact counts of used slots");
});
