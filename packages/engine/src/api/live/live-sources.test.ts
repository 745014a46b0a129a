/** What sources do with more changes than they keep, and with time that passes. */
import { beforeAll, beforeEach, expect, test, vi } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import type { Signal } from "../../signal/signal.ts";
import { LiveHome } from "./live-invalidations.ts";
import { LiveRuns } from "./live-runs.ts";
import { WatchedTopics } from "./watched-topics.ts";

let tw: Installation;
let watched: WatchedTopics;

beforeAll(async () => {
  tw = await Installation.open();
  await tw.addDag(manifestOf("etl", [{ taskId: "a" }]));
});

beforeEach(() => {
  watched = new WatchedTopics();
});

function signal(namespace: string, key: string, value: Signal["value"]): Signal {
  return { namespace, key, value, version: 1, sender: "test", time: new Date(), position: "1-1" };
}

test("runs: too many changed runs are a resync, and the next change is a message again", async () => {
  watched.add(["runs"], 0);
  const source = new LiveRuns();
  for (let n = 0; n <= 10_000; n++) source.onSignal(signal("run", `etl/${n}`, {}), watched);
  expect(await source.read(tw.database, watched)).toEqual({ messages: [], isLost: true });
  await tw.addRun("etl", { runId: "next" });
  expect(source.onSignal(signal("run", "etl/next", {}), watched)).toBe(true);
  const { isMore, messages } = await source.read(tw.database, watched);
  expect([isMore, messages]).toMatchObject([false, [{ topic: "runs", runs: [{ run_id: "next" }] }]]);
});

test("runs: many changed runs are several messages", async () => {
  watched.add(["runs"], 0);
  const source = new LiveRuns();
  for (let n = 0; n < 1_200; n++) source.onSignal(signal("run", `etl/${n}`, {}), watched);
  const sizes: number[] = [];
  for (let isMore = true; isMore; ) {
    const reading = await source.read(tw.database, watched);
    for (const message of reading.messages) if (message.topic === "runs") sizes.push(message.runs.length);
    isMore = reading.isMore ?? false;
  }
  expect(sizes).toEqual([500, 500, 200]);
});

test("tasks: many are several messages, and more than are kept are announced as more", async () => {
  watched.add(["run:etl/big"], 0);
  const id = await tw.addRun("etl", { runId: "big" });
  await tw.sql(
    `INSERT INTO task_instance (dag_run_id, task_id, map_index, state, pool, pool_slots, queue, priority_weight, operator)
     SELECT $1, 'a', n, 'scheduled', 'default_pool', 1, 'default', 1, 'task' FROM generate_series(0, 599) n`,
    [id],
  );
  const source = new LiveRuns();
  // About to run: no signals.
  expect(source.onTopics(watched)).toBe(true);
  const first = await source.read(tw.database, watched);
  expect(first.messages).toMatchObject([{ topic: "run:etl/big", tasks: [], more: true }]);
  for (let n = 0; n < 600; n++) source.onSignal(signal("task", "etl/big/a", { mapIndex: n }), watched);
  const sizes = async () =>
    (await source.read(tw.database, watched)).messages.map((message) =>
      "tasks" in message ? [message.tasks.length, message.more] : message.topic,
    );
  expect(await sizes()).toEqual([
    [500, false],
    [100, false],
  ]);
  for (let n = 0; n <= 10_000; n++) source.onSignal(signal("task", "etl/big/a", { mapIndex: n }), watched);
  expect((await sizes())[0]).toEqual([500, true]);
});

test("tasks: one that is no longer about to run is found without a signal", async () => {
  watched.add(["run:etl/back"], 0);
  await tw.addInstance(await tw.addRun("etl", { runId: "back" }), "a", { state: "queued" });
  const source = new LiveRuns();
  source.onTopics(watched);
  const states = async () =>
    (await source.read(tw.database, watched)).messages.flatMap((message) =>
      "tasks" in message ? message.tasks.map(({ state }) => state) : [],
    );
  expect(await states()).toEqual(["queued"]);
  await tw.sql("UPDATE task_instance SET state = 'pending' WHERE state = 'queued'");
  source.onWakeUp("moves");
  await expect.poll(states, { timeout: 10_000 }).toEqual(["pending"]);
  await tw.sql("DELETE FROM task_instance WHERE state = 'pending'");
  source.onSignal(signal("task", "etl/back/a", { mapIndex: -1 }), watched);
  expect(await states()).toEqual([null]);
});

test("home: time that passes is a change, because a run may be late", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  try {
    const home = new LiveHome();
    home.reset();
    expect(await home.read()).toEqual({ messages: [] });
    vi.advanceTimersByTime(30_001);
    expect(await home.read()).toEqual({ messages: [{ topic: "home", parts: ["lateness"] }] });
    expect(await home.read()).toEqual({ messages: [] });
  } finally {
    vi.useRealTimers();
  }
});
