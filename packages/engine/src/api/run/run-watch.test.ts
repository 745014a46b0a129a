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

/** Waits until the watch has begun to wait: its first look has found nothing new. */
async function waiting(): Promise<{ over: Promise<void>; isOver: () => boolean }> {
  let isOver = false;
  const over = watch.change(run, forever).then(() => {
    isOver = true;
  });
  // Somebody else's change is told after the looks before it: then our own first look is done, too.
  const other = await tw.addRun("sales", { state: "success" });
  await watch.change({ id: other, state: "running" }, forever);
  return { over, isOver: () => isOver };
}

describe("a wait for a run ends", () => {
  test("at once when its state is another already, or it is gone", async () => {
    await end();
    await watch.change(run, forever);
    await watch.change({ id: 4_000_000_000, state: "running" }, forever);
  });

  test("when somebody in this process says that a run ended", async () => {
    const { isOver, over } = await waiting();
    expect(isOver()).toBe(false);
    await end();
    tw.wakeUps.send("ended");
    await over;
  });

  test("when another process starts it: that is published while it is waited for", async () => {
    const others = new WakeUps(tw.database, { intervalMs: 0, askMs: 20 });
    try {
      await others.listen(() => {});
      // From here on the watch listens.
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

  test("when another process says so, or that this run was edited", async () => {
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

  test("when nobody says anything, a little later", async () => {
    const patient = new RunWatch({ database: tw.database, wakeUps: tw.wakeUps, fallbackMs: 20 });
    try {
      const over = patient.change(run, forever);
      await end();
      await over;
    } finally {
      await patient.close();
    }
  });

  test("after its time, when it is stopped, and when the watch is closed", async () => {
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

test("an end of some other run leaves the wait alone", async () => {
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
