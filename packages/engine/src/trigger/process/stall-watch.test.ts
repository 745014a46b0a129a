import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { StallWatch } from "./stall-watch.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function watched(whos: readonly (number | null)[]) {
  const tooLong = vi.fn();
  const watch = new StallWatch(1_000, tooLong);
  for (const [n, who] of whos.entries()) watch.record({ k: "seen", who, ms: 200 + n, stack: `stack ${n}` });
  return { watch, tooLong };
}

it("names the culprit that was found repeatedly although one sample failed", () => {
  expect(watched([7, 7, 7]).watch.current).toMatchObject({ who: 7, checks: 3, streak: 3, stack: "stack 0" });
  expect(watched([null, 7, 7]).watch.current).toMatchObject({ who: 7, streak: 2, stack: "stack 1" });
});

it("does not name a culprit that only one sample found, but records it", () => {
  expect(watched([7]).watch.current).toMatchObject({ who: 7, blocker: null });
  expect(watched([7, 7]).watch.current).toMatchObject({ who: 7, blocker: 7 });
  expect(watched([1, 7]).watch.current).toMatchObject({ who: null, blocker: null });
});

it("names no culprit if every sample finds another one", () => {
  expect(watched([1, 2, 3, 4, 4]).watch.current).toMatchObject({ who: null });
});

it("returns the ended stall with its whole length, and starts again", () => {
  const { watch, tooLong } = watched([7]);
  expect(watch.record({ k: "over", ms: 640 })).toMatchObject({ who: 7, blocker: null, ms: 640 });
  expect(watch.current).toBeNull();
  expect(watch.record({ k: "over", ms: 210 })).toMatchObject({ who: null, ms: 210, stack: "" });
  vi.advanceTimersByTime(10_000);
  expect(tooLong).not.toHaveBeenCalled();
});

it("reports once that a stall has lasted too long, counted from its beginning", () => {
  const { tooLong } = watched([7, 7]);
  vi.advanceTimersByTime(799);
  expect(tooLong).not.toHaveBeenCalled();
  vi.advanceTimersByTime(10_000);
  expect(tooLong).toHaveBeenCalledOnce();
});
