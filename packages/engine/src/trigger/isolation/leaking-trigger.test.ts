/** A trigger that crashes its process is found by isolating triggers from each other; only that trigger fails. */
import { expect, it } from "vitest";
import { RunnerUnderTest, triggerText } from "../../../test/trigger/runner-under-test.ts";

/** All of one class, so that only the arguments distinguish the leaking trigger from its neighbours. */
const WATCHES = triggerText(
  "watches",
  `const kept = [];
   for (let n = 1; ; n++) {
     await new Promise((resolve) => setTimeout(resolve, 20));
     if (args.leaks) kept.push(Buffer.alloc(32 * 2 ** 20, 1));
     else yield n;
   }`,
);
const LEAKING = 5;
const LATE = 100;

it("fails a trigger that leaks memory, Buffers included, and none of its neighbours", async () => {
  const under = await RunnerUnderTest.start({ memoryMb: 256 });
  const bundle = await under.bundle(WATCHES);
  const ids = [1, 2, 3, 4, 5, 6, 7, 8, 9];
  under.runner.run(
    ids.map((id) => ({ id, kind: "watches", args: { leaks: id === LEAKING }, bundlePath: bundle })),
  );
  const crashes = () =>
    under.reports.filter((each) => each.on === "engine" && each.message.includes("starting another")).length;
  await under.until(() => crashes() > 0);
  // In the main process: the processes of the suspects keep crashing.
  under.run(LATE, "watches", bundle);
  await under.event(LATE);
  expect(under.outcomes(LEAKING)).toEqual([]);
  const failure = await under.failure(LEAKING);
  expect(failure.code).toBe("TRIGGER_CRASHED");
  expect(failure.message).toMatch(/nothing else ran, 3 times: memory: it used \d+ MB, the limit is 256 MB/);
  // Split in thirds, including the rig's own trigger: 10, 3 or 4, 1 or 2, and alone.
  expect(crashes()).toBeLessThanOrEqual(3 + 3);
  // It was never restarted: a restarted trigger would count from 1 again.
  under.runner.ack(LATE);
  expect(await under.event(LATE, 2)).toBe(2);
  for (const id of ids) {
    if (id === LEAKING) continue;
    const before = under.outcomes(id).length;
    under.runner.ack(id);
    await under.event(id, before + 1);
    expect(under.outcomes(id).every(({ kind }) => kind === "event")).toBe(true);
  }
});
