import type { TaskManifest } from "@tradewind/sdk/manifest";
import { describe, expect, it, test } from "vitest";
import { dagManifest, taskManifest } from "../../../test/reference/manifests.ts";
import { compileGraph } from "../graph/graph.ts";
import { Drive } from "../signal/drive.ts";
import { RuleSet } from "../signal/signal-rules.ts";
import { attemptEnd, type EndTerms } from "./attempt-end.ts";
import type { AttemptOutcome } from "./attempt-outcome.ts";
import { RunModel } from "./run.ts";
import type { TaskState } from "./states.ts";

const ERROR = { name: "Error", message: "boom", stack: null, code: "E_BOOM" };
const OUTCOMES = {
  success: { kind: "success", output: 1, skip: ["b"] },
  skipped: { kind: "skipped", reason: "no data" },
  failed: { kind: "failed", error: ERROR, retry: true },
  rescheduled: { kind: "rescheduled", afterMs: 7 },
  cancelled: { kind: "cancelled" },
  lost: { kind: "lost", reason: "host gone" },
} as const satisfies Record<string, AttemptOutcome>;

const of = { taskId: "t", mapIndex: -1, attempt: "now", at: 100 };

function endOf(
  outcome: AttemptOutcome,
  {
    facts = {},
    isStopping = false,
    state = "running",
    ...terms
  }: { facts?: Partial<TaskManifest>; isStopping?: boolean; state?: TaskState } & Partial<EndTerms> = {},
) {
  const manifest = dagManifest([taskManifest("t", { retryDelayMs: 50, ...facts })]);
  const run = { dagId: "dag", runId: "run" };
  const drive = new Drive({
    ...{ manifest, rules: new RuleSet(manifest), run: { ...run, conf: {} }, startedAt: 1 },
    ...{ stored: {}, starts: [] },
  });
  const row = { taskId: "t", mapIndex: -1, tryNumber: 1, maxTries: 1, retryAt: null, infraLosses: 0 };
  const model = RunModel.load(compileGraph(manifest), [{ ...row, state, attempt: "now" }], { drive });
  if (isStopping) drive.setStopping("t", "Ann");
  return attemptEnd(model, model.get("t")!, outcome, { at: 100, run, ...terms });
}

test.each<[keyof typeof OUTCOMES, object]>([
  ["success", { type: "succeeded", skip: ["b"] }],
  ["skipped", { type: "skipped", reason: "no data" }],
  ["failed", { type: "failed", retry: true, retryAt: 150, reason: "E_BOOM: boom" }],
  ["rescheduled", { type: "rescheduled", retryAt: 107 }],
  ["cancelled", { type: "lost", reason: "cancelled", budget: null, retryAt: null }],
  ["lost", { type: "lost", reason: "host gone", budget: null, retryAt: null }],
])("translates %s", (kind, event) => {
  expect(endOf(OUTCOMES[kind], { keepsSlot: true })).toEqual({ ...of, ...event });
});

describe("a lost attempt", () => {
  it("counts against a budget, and is retried after the delay of a failure", () => {
    expect(endOf(OUTCOMES.lost, { lossBudget: 3 })).toMatchObject({ type: "lost", budget: 3, retryAt: 150 });
  });

  it("does not count for a streaming task", () => {
    const facts = { lifetime: "streaming" } as const;
    expect(endOf(OUTCOMES.lost, { facts, lossBudget: 3 })).toMatchObject({ budget: null, retryAt: null });
  });
});

describe.each(Object.keys(OUTCOMES) as (keyof typeof OUTCOMES)[])("the report %s", (kind) => {
  it("is a stop if the task was asked to stop, unless it is a success", () => {
    const expected = kind === "success" ? "succeeded" : "stopped";
    expect(endOf(OUTCOMES[kind], { isStopping: true }).type).toBe(expected);
  });

  it("is a restart of an instance that is restarting", () => {
    expect(endOf(OUTCOMES[kind], { state: "restarting" })).toEqual({ type: "restarted", ...of });
  });

  it("is a stop of an instance that was stopped while it was restarting", () => {
    expect(endOf(OUTCOMES[kind], { state: "restarting", isStopping: true })).toEqual({
      type: "stopped",
      ...of,
    });
  });
});
