/** Values of the signals that started a task: the batch that queues the task reads small values, its process large ones. */
import { createHash, randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import type { Json } from "@tradewind/sdk/manifest";
import { beforeAll, beforeEach, expect, it, vi } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc, type Call } from "../store/database/database.ts";
import { sendSignals } from "../store/signal/signals.ts";

let rig: SchedulerRig;
const PARTS = 1_001;

beforeAll(async () => {
  rig = await SchedulerRig.open();
  await rig.publish({
    "starting.ts": `
      import { all, dag, signal, start, type TaskContext } from "tradewind";
      import { createHash } from "node:crypto";
      import { appendFileSync, existsSync } from "node:fs";
      import { setTimeout as sleep } from "node:timers/promises";
      const root = ${JSON.stringify(rig.root)};
      const digest = (value: unknown) => createHash("sha1").update(JSON.stringify(value)).digest("hex");
      const note = (ctx: TaskContext) => appendFileSync(root + "/" + ctx.run.id,
        ctx.startSignals.map(({ key, value, version }) => key + "@" + version + "=" + digest(value)).join(" ") + "\\n");
      const parts = Array.from({ length: ${PARTS} }, (_, at) => signal("part." + at));
      export const starting = dag("starting", { stop: signal("end") }, (d) => {
        d.task("work", { on: [start(signal("go"))], retries: 1 }, async (_, ctx) => {
          note(ctx);
          while (!existsSync(root + "/open." + ctx.run.id)) await sleep(20);
        });
      });
      export const wide = dag("wide", { stop: signal("end") }, (d) => {
        d.task("work", { on: [start(all(...parts))] }, (_, ctx) => note(ctx));
      });
    `,
  });
  await rig.scheduler();
});

/** Names of the statements sent to the database. */
let asked: string[];

beforeEach(() => {
  asked = [];
  const { db } = rig;
  const pipeline = db.pipeline.bind(db);
  const spy = vi.spyOn(db, "pipeline").mockImplementation((calls: readonly Call[]) => {
    asked.push(...calls.map(({ statement }) => statement.name));
    return pipeline(calls);
  });
  return () => spy.mockRestore();
});

const timesAsked = (name: string) => asked.filter((each) => each === name).length;

const send = (key: string, values: readonly Json[]) => sendAll(values.map((value) => ({ key, value })));

async function sendAll(signals: readonly { key: string; value: Json }[]): Promise<number[]> {
  const drafts = signals.map((each) => ({ namespace: "default", ...each, sender: "test" }));
  const sent = await rig.db.transaction((tx) => sendSignals(tx, drafts));
  rig.wakeUps.send("signals");
  return sent.map(({ id }) => id);
}

/** The signals received by each start of a run. */
function seen(runId: string): string[] {
  try {
    return readFileSync(`${rig.root}/${runId}`, "utf8").split("\n").slice(0, -1);
  } catch {
    return [];
  }
}

const shown = (key: string, version: number, value: Json) =>
  `${key}@${version}=${createHash("sha1").update(JSON.stringify(value)).digest("hex")}`;

/** Lets the starts of a run end. */
const open = (runId: string) => writeFileSync(`${rig.root}/open.${runId}`, "");

async function begin(runId: string, value: Json): Promise<{ id: number; version: number }> {
  const id = await rig.trigger("starting", { runId });
  const [version] = await send("go", [value]);
  await rig.until(async () => seen(runId).length === 1, "the first start");
  return { id, version: version! };
}

async function waiting(id: number, count: number): Promise<void> {
  const sql = adhoc("SELECT count(*) AS n FROM run_start WHERE dag_run_id = $1");
  await rig.until(
    async () => (await rig.db.one<{ n: number }>(sql, [id]))?.n === count,
    `${count} pending starts`,
  );
}

async function end(id: number, starts: number): Promise<void> {
  await rig.until(async () => {
    const { work } = await rig.tasks(id);
    return work?.state === "success" && work.try_number === starts;
  }, "the last start");
  await send("end", [null]);
  expect(await rig.ended(id)).toBe("success");
}

it("passes each start of a burst its own value in order, without a query per start", async () => {
  const { id, version } = await begin("burst", { n: 0 });
  const values = Array.from({ length: 40 }, (_, at) => ({ n: at + 1 }));
  const versions = await send("go", values);
  await waiting(id, values.length);
  open("burst");
  await end(id, 41);
  const expected = versions.map((each, at) => shown("go", each, values[at]!));
  expect(seen("burst")).toEqual([shown("go", version, { n: 0 }), ...expected]);
  expect(timesAsked("signal-read-small")).toBeGreaterThan(40);
  expect(timesAsked("signal-read-versions")).toBe(0);
});

it("stores the tries of a start with its state, without the retries of earlier starts", async () => {
  const { id } = await begin("tries", 0);
  await send("go", [1, 2]);
  await waiting(id, 2);
  open("tries");
  await end(id, 3);
  const sql = adhoc("SELECT try_number, max_tries FROM task_instance WHERE dag_run_id = $1");
  expect(await rig.db.rows(sql, [id])).toEqual([{ try_number: 3, max_tries: 3 }]);
});

it("reads large values in the process of the task", async () => {
  const { id } = await begin("large", null);
  const values = [randomBytes(400_000).toString("hex"), "x".repeat(50_000), "small", null];
  const versions = await send("go", values);
  await waiting(id, values.length);
  asked = [];
  open("large");
  await end(id, 5);
  expect(seen("large").slice(1)).toEqual(versions.map((each, at) => shown("go", each, values[at]!)));
  expect(timesAsked("signal-read-versions")).toBe(2);
});

it("starts a task without the value of a signal that was deleted while the start was pending", async () => {
  const { id } = await begin("deleted", 0);
  const versions = await send("go", [1, 2]);
  await waiting(id, 2);
  await rig.db.rows(adhoc("DELETE FROM signal WHERE id = $1"), [versions[0]]);
  open("deleted");
  await end(id, 3);
  expect(seen("deleted").slice(1)).toEqual(["", shown("go", versions[1]!, 2)]);
});

it("does not read more signals in a batch than its limit", async () => {
  const id = await rig.trigger("wide", { runId: "wide" });
  const versions = await sendAll(
    Array.from({ length: PARTS }, (_, at) => ({ key: `part.${at}`, value: at })),
  );
  await end(id, 1);
  expect(seen("wide")).toEqual([versions.map((each, at) => shown(`part.${at}`, each, at)).join(" ")]);
  expect(timesAsked("signal-read-small")).toBe(0);
  expect(timesAsked("signal-read-versions")).toBe(1);
});
