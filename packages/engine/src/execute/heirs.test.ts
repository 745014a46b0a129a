import { describe, expect, it } from "vitest";
import type { ExecutorEvent } from "./contract.ts";
import { ExecutorUnderTest } from "./testing/executor-under-test.ts";

/** What began and ended, in the order in which it was told. */
function story(events: readonly ExecutorEvent[]): string[] {
  return events.flatMap((event) => {
    if (event.type === "started") return `${event.attempt} begins`;
    if (event.type !== "ended") return [];
    return `${event.attempt} ends${event.heir ? `, ${event.heir} next` : ""}`;
  });
}

describe("workloads that stand behind others", () => {
  it("begin when one of their lane has ended, first come first, and not before that is told", async () => {
    await using under = await ExecutorUnderTest.start({ parallelism: 4 });
    const named = (attempt: string, isBehind: boolean, lane = "a") =>
      under.workload("noop", { attempt, isBehind, lane });
    under.executor.submit([
      named("holder", false),
      named("second", true),
      named("third", true),
      named("other", true, "b"),
    ]);
    await under.ended("third");
    expect(story(under.events)).toEqual([
      "holder begins",
      "holder ends, second next",
      "second begins",
      "second ends, third next",
      "third begins",
      "third ends",
    ]);
    expect(under.executor.freeSlots()).toBeGreaterThan(0);
    under.executor.release(["other", "holder", "nobody"]);
    await under.ended("other");
    expect(story(under.events).slice(-2)).toEqual(["other begins", "other ends"]);
  });

  it("have nothing to pass on when they are cancelled before they begin", async () => {
    await using under = await ExecutorUnderTest.start({ parallelism: 4 });
    under.executor.submit([
      under.workload("waitForAbort", { attempt: "holder", lane: "a" }),
      under.workload("noop", { attempt: "second", lane: "a", isBehind: true }),
      under.workload("noop", { attempt: "third", lane: "a", isBehind: true }),
    ]);
    await under.started("holder");
    under.executor.cancel("second", "not wanted");
    await under.ended("second");
    under.executor.cancel("holder", "not wanted");
    await under.ended("third");
    expect(story(under.events)).toEqual([
      "holder begins",
      "second ends",
      "holder ends, third next",
      "third begins",
      "third ends",
    ]);
  });

  it("get nothing from one whose slots are somebody else's by now", async () => {
    await using under = await ExecutorUnderTest.start({ parallelism: 4 });
    under.executor.submit([
      under.workload("waitForAbort", { attempt: "marked", lane: "a" }),
      under.workload("waitForAbort", { attempt: "holder", lane: "a" }),
      under.workload("noop", { attempt: "second", lane: "a", isBehind: true }),
    ]);
    await Promise.all(["marked", "holder"].map((attempt) => under.started(attempt)));
    under.executor.cancel("marked", "no longer wanted", { hasNoSlots: true });
    await under.ended("marked");
    under.executor.cancel("holder", "stopped");
    await under.ended("second");
    const ends = under.events.filter((event) => event.type === "ended");
    expect(ends.map(({ attempt, heir, vacates }) => [attempt, heir, vacates])).toEqual([
      ["marked", undefined, undefined],
      ["holder", "second", undefined],
      ["second", undefined, "a"],
    ]);
  });

  it("are lost, not run, when the executor stops", async () => {
    await using under = await ExecutorUnderTest.start({ parallelism: 2 });
    under.executor.submit([
      under.workload("waitForAbort", { attempt: "holder", lane: "a" }),
      under.workload("noop", { attempt: "second", lane: "a", isBehind: true }),
    ]);
    await under.started("holder");
    await under.executor.stop(0);
    const second = under.events.find((event) => event.type === "ended" && event.attempt === "second");
    expect(second).toMatchObject({ outcome: { kind: "lost" } });
    expect(story(under.events)).not.toContain("second begins");
  });
});
