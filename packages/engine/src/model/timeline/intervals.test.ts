import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ALL_TASK_STATES, type TaskState } from "../run/states.ts";
import { intervalsOf, type TimedAttempt, type TimedInstance, type TimedWait } from "./intervals.ts";

const instance = (facts: Partial<TimedInstance>): TimedInstance => ({
  state: "success",
  tryNumber: 1,
  attempt: "own",
  scheduledAt: null,
  queuedAt: null,
  startedAt: null,
  endedAt: null,
  retryAt: null,
  ...facts,
});
const attempt = (facts: Partial<TimedAttempt>): TimedAttempt => ({
  ...instance({}),
  attempt: "first",
  state: "failed",
  ...facts,
});
const wait = (facts: Partial<TimedWait>): TimedWait => ({
  attempt: "first",
  tryNumber: 1,
  scheduledAt: null,
  deferredAt: 0,
  endedAt: null,
  ...facts,
});

const shown = (...of: Parameters<typeof intervalsOf>) =>
  intervalsOf(...of).map(({ end, kind, next, start, tryNumber }) => [kind, tryNumber, start, end, next]);

describe("intervalsOf", () => {
  it("shows the steps of one attempt", () => {
    const own = instance({ scheduledAt: 0, queuedAt: 5, startedAt: 7, endedAt: 20 });
    expect(shown(own, [], [])).toEqual([
      ["scheduled", 1, 0, 5, "queued"],
      ["queued", 1, 5, 7, "running"],
      ["running", 1, 7, 20, "success"],
    ]);
    expect(shown(instance({ state: "queued", scheduledAt: 0, queuedAt: 5 }), [], [])).toEqual([
      ["scheduled", 1, 0, 5, "queued"],
      ["queued", 1, 5, null, null],
    ]);
    expect(shown(instance({ state: "scheduled", attempt: null, scheduledAt: 3 }), [], [])).toEqual([
      ["scheduled", 1, 3, null, null],
    ]);
    expect(shown(instance({ state: "skipped", attempt: null, endedAt: 9 }), [], [])).toEqual([]);
  });

  it("shows retry waits only where a retry followed by itself", () => {
    const own = instance({ tryNumber: 3, scheduledAt: 100, queuedAt: 100, startedAt: 101, endedAt: 110 });
    const first = attempt({ queuedAt: 0, startedAt: 1, endedAt: 10, retryAt: 40 });
    const second = attempt({ attempt: "second", tryNumber: 2, queuedAt: 40, startedAt: 41, endedAt: 50 });
    expect(shown(own, [second, first], [])).toEqual([
      ["queued", 1, 0, 1, "running"],
      ["running", 1, 1, 10, "failed"],
      ["up_for_retry", 1, 10, 40, "scheduled"],
      ["queued", 2, 40, 41, "running"],
      ["running", 2, 41, 50, "failed"],
      ["queued", 3, 100, 101, "running"],
      ["running", 3, 101, 110, "success"],
    ]);
    const sleeping = instance({ state: "up_for_retry", attempt: "first", endedAt: 10, retryAt: 40 });
    expect(shown(sleeping, [first], []).at(-1)).toEqual(["up_for_retry", 1, 10, null, null]);
  });

  it("shows a wait after the process that began it, and what followed", () => {
    const deferred = attempt({ state: "deferred", queuedAt: 0, startedAt: 1, endedAt: 10 });
    const own = instance({ scheduledAt: 60, queuedAt: 61, startedAt: 62, endedAt: 70 });
    expect(shown(own, [deferred], [wait({ deferredAt: 11, endedAt: 60 })])).toEqual([
      ["queued", 1, 0, 1, "running"],
      ["running", 1, 1, 10, "deferred"],
      ["deferred", 1, 10, 60, "scheduled"],
      ["scheduled", 1, 60, 61, "queued"],
      ["queued", 1, 61, 62, "running"],
      ["running", 1, 62, 70, "success"],
    ]);
    const waiting = instance({ attempt: "first", state: "deferred", queuedAt: 0, startedAt: 1 });
    expect(shown(waiting, [deferred], [wait({ deferredAt: 11 })]).at(-1)).toEqual([
      ...["deferred", 1, 10, null, null],
    ]);
    const byWait = instance({ attempt: "first", state: "failed", queuedAt: 0, startedAt: 1, endedAt: 60 });
    expect(shown(byWait, [deferred], [wait({ deferredAt: 11, endedAt: 61 })]).slice(1)).toEqual([
      ["running", 1, 1, 10, "deferred"],
      ["deferred", 1, 10, 60, "failed"],
    ]);
  });

  it("shows a wait that no process began", () => {
    const begun = wait({ attempt: "own", scheduledAt: 0, deferredAt: 3 });
    expect(shown(instance({ state: "deferred", startedAt: 3 }), [], [begun])).toEqual([
      ["scheduled", 1, 0, 3, "deferred"],
      ["deferred", 1, 3, null, null],
    ]);
    const resumed = instance({ scheduledAt: 30, queuedAt: 30, startedAt: 31, endedAt: 40 });
    expect(shown(resumed, [], [{ ...begun, attempt: "first", endedAt: 30 }])).toEqual([
      ["scheduled", 1, 0, 3, "deferred"],
      ["deferred", 1, 3, 30, "scheduled"],
      ["queued", 1, 30, 31, "running"],
      ["running", 1, 31, 40, "success"],
    ]);
    const retried = attempt({ startedAt: 3, scheduledAt: 0, endedAt: 30, retryAt: 50 });
    expect(
      shown(
        instance({ attempt: "first", state: "up_for_retry", endedAt: 30 }),
        [retried],
        [{ ...begun, attempt: "first", endedAt: 31 }],
      ),
    ).toEqual([
      ["scheduled", 1, 0, 3, "deferred"],
      ["deferred", 1, 3, 30, "failed"],
      ["up_for_retry", 1, 30, null, null],
    ]);
  });

  it("shows repeated checks", () => {
    const check = attempt({ state: "up_for_reschedule", queuedAt: 0, startedAt: 1, endedAt: 2, retryAt: 60 });
    const own = instance({ scheduledAt: 60, queuedAt: 60, startedAt: 61, endedAt: 62 });
    expect(shown(own, [check], [])[2]).toEqual(["up_for_reschedule", 1, 2, 60, "scheduled"]);
  });

  it("never overlaps, for any times that executors report", () => {
    const time = fc.option(fc.integer({ min: 0, max: 1000 }));
    const state = fc.constantFrom<TaskState>(...ALL_TASK_STATES);
    const times = { scheduledAt: time, queuedAt: time, startedAt: time, endedAt: time, retryAt: time };
    const ids = fc.constantFrom("a", "b", "c");
    const attempts = fc.uniqueArray(fc.record({ attempt: ids, tryNumber: fc.nat(5), state, ...times }), {
      selector: (each) => each.attempt,
    });
    const waits = fc.uniqueArray(
      fc.record({
        attempt: ids,
        tryNumber: fc.nat(5),
        scheduledAt: time,
        deferredAt: fc.integer({ min: 0, max: 1000 }),
        endedAt: time,
      }),
      { selector: (each) => each.attempt },
    );
    const own = fc.record({ attempt: fc.option(ids), tryNumber: fc.nat(5), state, ...times });
    fc.assert(
      fc.property(own, attempts, waits, (present, past, waited) => {
        const drawn = intervalsOf(present, past, waited);
        for (const [place, { end, next, start }] of drawn.entries()) {
          expect(end === null).toBe(next === null);
          expect(end ?? start).toBeGreaterThanOrEqual(start);
          const following = drawn[place + 1];
          if (following) expect(following.start).toBeGreaterThanOrEqual(end ?? Number.POSITIVE_INFINITY);
        }
      }),
    );
  });
});
