/** The state of a signal-driven run between two transactions: counted starts, stops, ticks, consecutive failures. */
import type { DagManifest, SignalCondition, TaskManifest } from "@tradewind/sdk/manifest";
import { describe, expect, test } from "vitest";
import { dagManifest, taskManifest } from "../../../test/reference/manifests.ts";
import { startsAfter } from "../../../test/reference/stored-starts.ts";
import { Drive, HEALTHY_MS, isDriven, type StoredDrive, storedDrive } from "./drive.ts";
import type { Fact } from "./signal-condition.ts";
import { RuleSet } from "./signal-rules.ts";
import type { StoredStart } from "./waiting-starts.ts";

const signal = (key: string): SignalCondition => {
  return { kind: "signal", namespace: "default", key, where: null, equals: null, inRun: false };
};
const all = (...keys: string[]): SignalCondition => ({ kind: "all", of: keys.map(signal) });
const heard = (key: string): Fact => {
  return { kind: "signal", namespace: "default", key, value: null, version: 1, from: null };
};
const everyMs = (ms: number) => ({ kind: "interval", everyMs: ms, style: "trigger" }) as const;

const TASKS: TaskManifest[] = [
  taskManifest("t", { rules: [{ action: "start", when: all("a", "b"), once: false }] }),
  taskManifest("tick", { every: everyMs(100) }),
  taskManifest("s", { lifetime: "streaming" }),
];

function driveOf(stored: StoredDrive = {}, facts: Partial<DagManifest> = {}, tasks = TASKS): Drive {
  return loaded({ stored, starts: [] }, facts, tasks);
}

function loaded(
  { starts, stored }: { stored: StoredDrive; starts: readonly StoredStart[] },
  facts: Partial<DagManifest> = {},
  tasks = TASKS,
): Drive {
  const manifest = dagManifest(tasks, facts);
  const run = { dagId: "dag", runId: "run", conf: {} };
  return new Drive({ manifest, rules: new RuleSet(manifest), run, startedAt: 1_000, stored, starts });
}

/** As loaded by the next owner; for a drive without stored state. */
const reloaded = (drive: Drive) => {
  const stored = JSON.parse(JSON.stringify(drive.drainState() ?? {})) as StoredDrive;
  return loaded({ stored, starts: startsAfter([], drive.drainStarts()) });
};

test.each<[string, Partial<TaskManifest>, Partial<DagManifest>, boolean]>([
  ["nothing", {}, {}, false],
  ["a rule to start", { rules: [{ action: "start", when: signal("a"), once: true }] }, {}, true],
  ["a rule to stop", { rules: [{ action: "stop", when: signal("a"), once: true }] }, {}, true],
  ["times", { every: everyMs(5) }, {}, true],
  ["a streaming task", { lifetime: "streaming" }, {}, true],
  ["onSignal", { reacts: [{ namespace: "default", key: "a" }] }, {}, true],
  ["a condition that closes it", {}, { stop: signal("a") }, true],
])("isDriven is correct for a DAG with %s", (_, task, dag, expected) => {
  expect(isDriven(dagManifest([taskManifest("t", task)], dag))).toBe(expected);
});

describe("the stored state", () => {
  test("is complete after any change, and null without one", () => {
    const drive = driveOf();
    expect(drive.drainState()).toBeNull();
    drive.setStopping("s", "Ann");
    drive.countFailure("s", 5);
    drive.receive(heard("a"));
    expect(drive.drainState()).toEqual({
      rules: [expect.objectContaining({ taskId: "t", ruleIndex: 0 })],
      tasks: { tick: { tickAt: 1_100 }, s: { stopping: "Ann", failures: 1 } },
    });
    drive.addStart("t");
    expect(drive.drainState()).toBeNull();
    expect(drive.drainStarts()).toMatchObject([{ taskId: "t", added: [{ cause: null }] }]);
    expect(drive.drainStarts()).toEqual([]);
    drive.setStopping("s", "Ann");
    drive.forgetStarts("tick");
    drive.consumeStart("tick");
    expect([drive.drainState(), drive.drainStarts()]).toEqual([null, []]);
  });

  test("is returned again after giveBack, with later changes", () => {
    const drive = driveOf();
    drive.receive(heard("a"));
    drive.addStart("t");
    const lost = [drive.drainState(), drive.drainStarts()];
    drive.restoreChanges();
    expect([drive.drainState(), drive.drainStarts()]).toEqual(lost);
    drive.restoreChanges();
    drive.addStart("t");
    expect(drive.drainStarts()).toMatchObject([
      { from: 0, before: 0, added: [{ ordinal: 0 }, { ordinal: 1 }] },
    ]);
    drive.consumeStart("t");
    drive.drainStarts();
    drive.restoreChanges();
    expect(drive.drainStarts()).toEqual([{ taskId: "t", from: 0, before: 1, added: [] }]);
  });

  test("has the cause of each start, in the order of the starts, and the cause of the last try", () => {
    const drive = driveOf();
    drive.addStart("t", undefined, { start: [4] });
    drive.addStart("t");
    drive.addStart("t", undefined, { start: [5, 6] });
    drive.addStart("t", undefined, { restart: [7] });
    drive.consumeStart("t");
    drive.restarted("t", [8]);
    const stored = drive.drainState() ?? {};
    expect(stored.tasks?.["t"]).toEqual({ cause: { start: [4], restart: [8] } });
    const starts = startsAfter([], drive.drainStarts());
    expect(starts.map(({ cause }) => cause)).toEqual([null, { start: [5, 6] }, { restart: [7] }]);
    const next = loaded({ stored, starts });
    const seen = [next.startSignals("t")];
    for (let start = 0; start < 4; start++) {
      next.consumeStart("t");
      seen.push(next.startSignals("t"));
    }
    expect(seen).toEqual([[8, 4], [], [5, 6], [7], []]);
  });

  test("of a burst has each start written once and removed once", () => {
    const drive = driveOf();
    const burst = 1_000;
    for (let n = 0; n < burst; n++) drive.addStart("t", undefined, { start: [n] });
    const sizes = [JSON.stringify(drive.drainStarts()).length];
    for (let n = 0; n < burst; n++) {
      drive.consumeStart("t");
      sizes.push(JSON.stringify([drive.drainState(), drive.drainStarts()]).length);
    }
    // The first change has all starts; each later one has the size of one start, for any number of waiting starts.
    expect(Math.max(...sizes.slice(1))).toBeLessThan(300);
    expect(drive.drainStarts()).toEqual([]);
  });

  test("keeps a partly fulfilled condition for the next owner", () => {
    const drive = driveOf();
    drive.receive(heard("a"));
    const next = reloaded(drive);
    expect(next.receive(heard("b"))).toMatchObject([{ taskId: "t", action: "start" }]);
    expect(reloaded(next).receive(heard("b"))).toEqual([]);
  });

  test("of an empty row is that of a new drive", () => {
    expect(storedDrive({})).toEqual({});
    expect(storedDrive(null)).toEqual({});
  });
});

describe("starts", () => {
  test("count one by one, but a tick adds one only if none waits", () => {
    const drive = driveOf();
    for (let n = 0; n < 3; n++) drive.addStart("t");
    drive.addStart("t", 1);
    expect(drive.starts("t")).toBe(3);
    expect(reloaded(drive).starts("t")).toBe(3);
    drive.consumeStart("t");
    drive.forgetStarts("t");
    drive.addStart("t", 1);
    drive.addStart("t", 1);
    expect(drive.starts("t")).toBe(1);
  });
});

describe("ticks", () => {
  test("count from the start of the run, and missed ticks count as one", () => {
    const drive = driveOf();
    expect([drive.nextTickAt(), drive.tickAt("tick"), drive.tickAt("t")]).toEqual([1_100, 1_100, null]);
    expect(drive.consumeTicks(1_099)).toEqual([]);
    expect(drive.consumeTicks(1_100)).toEqual(["tick"]);
    expect(drive.consumeTicks(1_550)).toEqual(["tick"]);
    expect(drive.nextTickAt()).toBe(1_600);
  });

  test("that fell due while the run had no owner are neither lost nor repeated", () => {
    const drive = driveOf();
    drive.consumeTicks(1_150);
    const next = reloaded(drive);
    expect(next.consumeTicks(1_450)).toEqual(["tick"]);
    expect(next.consumeTicks(1_450)).toEqual([]);
    expect(next.nextTickAt()).toBe(1_500);
  });
});

test("a failure after a healthy period counts as the first", () => {
  const drive = driveOf();
  expect([drive.countFailure("s", 10), drive.countFailure("s", 10)]).toEqual([1, 2]);
  const next = reloaded(drive);
  expect(next.countFailure("s", HEALTHY_MS - 1)).toBe(3);
  expect(next.countFailure("s", HEALTHY_MS)).toBe(1);
});

describe("open and closed", () => {
  test("is open while a rule can start a task, or a task has ticks or an onSignal handler", () => {
    const once = (taskId: string) =>
      taskManifest(taskId, { rules: [{ action: "start", when: signal("a"), once: true }] });
    const drive = driveOf(undefined, {}, [once("t")]);
    expect(drive.isOpen).toBe(true);
    drive.receive(heard("a"));
    expect(drive.isOpen).toBe(false);
    expect(driveOf(undefined, {}, [taskManifest("t", { every: everyMs(5) })]).isOpen).toBe(true);
    const reacts = [{ namespace: "default", key: "a" }];
    expect(driveOf(undefined, {}, [taskManifest("t", { reacts })]).isOpen).toBe(true);
    expect(driveOf(undefined, {}, [taskManifest("t", { lifetime: "streaming" })]).isOpen).toBe(false);
  });

  test("ignores signals and ticks when closed, also after a reload", () => {
    const drive = driveOf();
    drive.receive(heard("a"));
    drive.close("Ann");
    drive.close("Bo");
    for (const each of [drive, reloaded(drive)]) {
      expect([each.closed, each.isOpen, each.nextTickAt()]).toEqual(["Ann", false, null]);
      expect(each.consumeTicks(9_000)).toEqual([]);
      expect([...each.receive(heard("a")), ...each.receive(heard("b"))]).toEqual([]);
    }
  });
});
