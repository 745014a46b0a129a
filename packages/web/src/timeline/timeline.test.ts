import { describe, expect, test } from "vitest";
import { panned, ticksOf, wholeOf, zoomed } from "./time-scale.ts";
import { lookOfInterval, readTimeline, type TimelineAnswer } from "./timeline-data.ts";
import { rowAt, stateOf, timelineRows } from "./timeline-rows.ts";

const bytes = (...values: number[]) => btoa(String.fromCharCode(...values));

/** Two groups, one in the other; a map; a task that runs. */
const ANSWER: TimelineAnswer = {
  now: 10_000,
  origin: 1_000,
  run: {
    run_id: "r1",
    run_type: "manual",
    state: "running",
    version: 1,
    try_number: 1,
    logical_date: null,
    run_after: 1_000,
    queued: 1_000,
    started: 1_000,
    ended: null,
  },
  task_states: ["none", "running", "success", "failed"],
  interval_kinds: ["scheduled", "queued", "running"],
  tasks: [
    { task_id: "first", group: null, operator: "task", is_mapped: false, role: "work", pool: "p" },
    { task_id: "g.load", group: "g", operator: "task", is_mapped: true, role: "work", pool: "p" },
    { task_id: "g.h.last", group: "g.h", operator: "task", is_mapped: false, role: "work", pool: "p" },
  ],
  removed: ["old"],
  groups: [
    { group_id: "g", parent: null, is_mapped: false },
    { group_id: "g.h", parent: "g", is_mapped: false },
  ],
  edges: { from: [0, 1], to: [1, 2] },
  instances: {
    tasks: [0, 1, 1],
    map_indexes: [-1, 0, 1],
    labels: null,
    states: bytes(2, 3, 1),
    tries: bytes(2, 1, 1),
    intervals: [3, 1, 1],
  },
  intervals: {
    kinds: bytes(1, 2, 2, 2, 2),
    tries: bytes(1, 1, 2, 1, 1),
    next: bytes(1, 3, 2, 3, 0),
    starts: [0, 500, 2_000, 4_000, 4_000],
    ends: [500, 1_500, 3_000, 5_000, null],
  },
  maps: [
    {
      at: 1,
      counts: [
        [3, 1],
        [1, 1],
      ],
      instances: 2,
      tries: 1,
      start: 4_000,
      end: 5_000,
      shown: 2,
    },
  ],
  critical_path: {
    tasks: [0],
    map_indexes: [-1],
    after: ["run"],
    starts: [0],
    ends: [3_000],
    work: [2_000],
    queue: [500],
    wait: [500],
    overhead: [0],
    time: { work: 2_000, queue: 500, wait: 500, overhead: 0 },
  },
  projection: {
    tasks: [1, 2],
    starts: [9_000, 11_000],
    ends: [11_000, 12_000],
    late_ends: [12_000, 14_000],
    path: [1],
    end: 12_000,
    late_end: 14_000,
    unknown: 0,
  },
  usual: null,
  compared: null,
  more: false,
} as TimelineAnswer;

const timeline = readTimeline(ANSWER);
const ALL = { closed: new Set<string>(), order: "graph", filter: "" } as const;

describe("readTimeline", () => {
  test("gives each instance its own intervals", () => {
    const [first, load] = timeline.tasks;
    expect(
      first!.instances[0]!.intervals.map(({ kind, next, tryNumber }) => [kind, next, tryNumber]),
    ).toEqual([
      ["queued", "running", 1],
      ["running", "failed", 1],
      ["running", "success", 2],
    ]);
    expect(load!.instances.map(({ intervals }) => intervals.length)).toEqual([1, 1]);
    expect(load!.instances[1]!.intervals[0]).toMatchObject({ next: null, end: 9_000 });
    expect(load!.upstream).toEqual([0]);
  });

  test("knows what is expected, and which tasks decide the end", () => {
    expect([...timeline.expected].map(([task, { decides }]) => [task, decides])).toEqual([
      [1, true],
      [2, false],
    ]);
    expect(timeline.tasks[3]).toMatchObject({ taskId: "old", isRemoved: true });
  });

  test("draws a failed try as failed", () => {
    const [, failed, last] = timeline.tasks[0]!.instances[0]!.intervals;
    expect([lookOfInterval(failed!), lookOfInterval(last!)]).toEqual(["failed", "success"]);
  });
});

describe("timelineRows", () => {
  const labels = (options: Parameters<typeof timelineRows>[1]) =>
    timelineRows(timeline, options).map(({ depth, label }) => `${"-".repeat(depth)}${label}`);

  test("put tasks below their groups", () => {
    expect(labels(ALL)).toEqual(["first", "g", "-load", "-h", "--last", "old"]);
  });

  test("hide what is in a closed group", () => {
    expect(labels({ ...ALL, closed: new Set(["g"]) })).toEqual(["first", "g", "old"]);
    expect(labels({ ...ALL, closed: new Set(["g.h"]) })).toEqual(["first", "g", "-load", "-h", "old"]);
  });

  test("are ordered by start without groups", () => {
    expect(labels({ ...ALL, order: "start" })).toEqual(["first", "g.load", "g.h.last", "old"]);
  });

  test("are found by height", () => {
    const rows = timelineRows(timeline, ALL);
    expect(rows.map(({ top }) => rowAt(rows, top))).toEqual([0, 1, 2, 3, 4, 5]);
    expect(rowAt(rows, 1e9)).toBe(rows.length);
  });

  test("of a group say how much has ended and from when to when", () => {
    const group = timelineRows(timeline, ALL)[1]!;
    expect(group).toMatchObject({ kind: "group", tasks: 2, done: 0, span: { start: 4_000, end: 9_000 } });
  });

  test("show the worst state of a map", () => {
    expect(stateOf(timeline.tasks[1]!)).toBe("failed");
  });
});

describe("the window", () => {
  const whole = wholeOf(0, 1_000);
  test("keeps the time under the pointer when it is zoomed", () => {
    const view = zoomed(whole, 0.5, 400, whole);
    const share = (window: { from: number; to: number }) => (400 - window.from) / (window.to - window.from);
    expect(share(view)).toBeCloseTo(share(whole));
    expect(zoomed(view, 100, 400, whole)).toEqual(whole);
  });
  test("does not leave the whole", () => {
    const view = zoomed(whole, 0.5, 400, whole);
    expect(panned(view, -1e9, whole).from).toBe(whole.from);
    expect(panned(view, 1e9, whole).to).toBeCloseTo(whole.to);
  });
  test("has ticks at round moments", () => {
    expect(ticksOf({ from: 0, to: 60_000 }, 600, 1_700_000_000_500)).toEqual({
      step: 10_000,
      ticks: [9_500, 19_500, 29_500, 39_500, 49_500, 59_500],
    });
  });
});
