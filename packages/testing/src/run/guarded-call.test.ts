import { dag } from "@tradewind/sdk";
import { expect, test } from "vitest";
import { runDag } from "../index.ts";

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

test("fails only the task that would crash its process", async () => {
  const crashes = dag("crashes", (d) => {
    d.task("works", () => pause(60));
    d.task("leaves", () => process.exit(0));
    d.task("rejects", async () => {
      Promise.reject(new Error("not awaited"));
      await pause(20);
    });
    d.task("returns", () => void Promise.reject(new Error("as it returns")));
    d.task("throws", async () => {
      setTimeout(() => {
        throw new Error("from a timer");
      }, 5);
      await pause(20);
    });
    d.task("aggregates", () => void Promise.any([Promise.reject(new Error("a"))]));
    d.task("recovers", { retries: 1 }, (_, ctx) => void (ctx.tryNumber === 1 && process.exit(3)));
    d.task("tells", { onSuccess: () => void Promise.reject(new Error("in a callback")) }, () => {});
  });
  const run = await runDag(crashes);
  expect(run.task("leaves").error).toMatchObject({
    code: "TASK_PROCESS_DIED",
    message: expect.stringContaining('task "leaves" called process.exit(0)'),
  });
  const errors = Object.fromEntries(run.tasks.map(({ taskId, error }) => [taskId, error?.message]));
  expect(errors).toMatchObject({
    works: undefined,
    rejects: "not awaited",
    returns: "as it returns",
    throws: "from a timer",
    aggregates: "All promises were rejected: a",
    tells: undefined,
  });
  expect(run.task("recovers")).toMatchObject({ state: "success", tries: 2 });
  expect(run.logs["tells"]).toMatchObject([{ message: expect.stringContaining("in a callback") }]);
});

test("ignores errors that a task throws after it has ended", async () => {
  const late = dag("late", (d) => {
    const first = d.task("first", { openWork: "allow" }, () => {
      setTimeout(() => {
        throw new Error("too late");
      }, 10);
    });
    d.task("second", { after: first }, () => pause(50));
  });
  expect((await runDag(late)).states).toEqual({ first: "success", second: "success" });
});
