import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { WakeUps } from "../../job/wake-up.ts";
import { RunWatch } from "./run-watch.ts";

const NEVER_MS = 3_600_000;
const forever = { ms: NEVER_MS, stop: new AbortController().signal };

let tw: Installation;
let watch: RunWatch;
let run: { id: number; state: string };

beforeAll(async () => {
  tw = await Installation.open();
  await tw.addDag(manifestOf("sales", [{ taskId: "a" }]));
});

beforeEach(async () => {
  watch = new RunWatch({ database: tw.database, wakeUps: tw.wakeUps, fallbackMs: NEVER_MS });
  run = { id: await tw.addRun("sales", { state: "running" }), state: "running" };
});

afterEach(() => watch.close());

const end = (id = run.id) => tw.sql("UPDATE dag_run SET state = 'success' WHERE id = $1", [id]);

/** Waits until the first poll of the watch has found no change. */
async function waiting(): Promise<{ over: Promise<void>; isOver: () => boolean }> {
  let isOver = false;
  const over = watch.change(run, forever).then(() => {
    isOver = true;
  });
  // The change of another run is reported after earlier polls, so our first poll is done too.
  const other = await tw.addRun("sales", { state: "success" });
  await watch.change({ id: other, state: "running" }, forever);
  return { over, isOver: () => isOver };
}

describe("wait for a run", () => {
  test("ends at once if the state has already changed or the run was deleted", async () => {
    await end();
    await watch.change(run, forever);
    await watch.change({ id: 4_000_000_000, state: "running" }, forever);
  });

  test("ends at a wake-up of this process", async () => {
    const { isOver, over } = await waiting();
    expect(isOver()).toBe(false);
    await end();
    tw.wakeUps.send("ended");
    await over;
  });

  test("ends when another process starts the run, which is published while a waiter exists", async () => {
    const others = new WakeUps(tw.database, { intervalMs: 0, askMs: 20 });
    try {
      await others.listen(() => {});
      // The watch is subscribed from here on.
      const first = await waiting();
      await end();
      others.send("ended");
      await first.over;
      run = { id: await tw.addRun("sales", { state: "queued" }), state: "queued" };
      const { over } = await waiting();
      await tw.sql("UPDATE dag_run SET state = 'running' WHERE id = $1", [run.id]);
      others.send("states");
      await over;
    } finally {
      await others.close();
    }
  });

  test("ends at a wake-up of another process, or after an edit of the run", async () => {
    const others = new WakeUps(tw.database, { intervalMs: 0 });
    try {
      for (const topic of ["ended", `run:${run.id}`] as const) {
        run = { id: await tw.addRun("sales", { state: "running" }), state: "running" };
        const { over } = await waiting();
        await end();
        others.send(topic);
        await over;
      }
    } finally {
      others.close();
    }
  });

  test("ends at the next poll if the wake-up is lost", async () => {
    const patient = new RunWatch({ database: tw.database, wakeUps: tw.wakeUps, fallbackMs: 20 });
    try {
      const over = patient.change(run, forever);
      await end();
      await over;
    } finally {
      await patient.close();
    }
  });

  test("ends after its timeout, when stopped, and when the watch is closed", async () => {
    await watch.change(run, { ms: 5, stop: forever.stop });
    const leaving = new AbortController();
    const left = watch.change(run, { ms: NEVER_MS, stop: leaving.signal });
    leaving.abort();
    await left;
    await watch.change(run, { ms: NEVER_MS, stop: leaving.signal });
    const { over } = await waiting();
    await watch.close();
    await over;
  });
});

test("continues after the end of another run", async () => {
  const { isOver, over } = await waiting();
  tw.wakeUps.send("ended");
  const other = { id: await tw.addRun("sales", { state: "running" }), state: "running" };
  const otherOver = watch.change(other, forever);
  await end(other.id);
  tw.wakeUps.send("ended");
  await otherOver;
  expect(isOver()).toBe(false);
  await end();
  tw.wakeUps.send("ended");
  await over;
});
