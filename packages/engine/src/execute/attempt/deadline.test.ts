import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { Deadline } from "./deadline.ts";

test("a timer can be moved to an earlier moment, not to a later one", async () => {
  const deadline = new Deadline();
  const first = await new Promise((resolve) => {
    deadline.within(600_000, () => resolve("the longest"));
    deadline.within(5, () => resolve("the shortest"));
    deadline.within(300_000, () => resolve("the last"));
  });
  expect(first).toBe("the shortest");
});

test("a timer fires once until it is cleared", async () => {
  const deadline = new Deadline();
  let done = 0;
  await new Promise<void>((resolve) => {
    deadline.within(1, () => {
      done++;
      resolve();
    });
  });
  deadline.within(1, () => done++);
  await sleep(20);
  expect(done).toBe(1);
  deadline.clear();
  await new Promise<void>((resolve) => deadline.within(1, resolve));
});

test("a timer that is cleared, or longer than setTimeout allows, does not fire", async () => {
  const deadline = new Deadline();
  let done = 0;
  deadline.within(1, () => done++);
  deadline.clear();
  for (const ms of [Number.POSITIVE_INFINITY, 2 ** 40]) deadline.within(ms, () => done++);
  await sleep(20);
  expect(done).toBe(0);
  deadline.clear();
});
