/**
 * The live stream of states: actions of schedulers, tasks and users, received in another process as they happen. The
 * listeners here poll once an hour: they receive signals because of wake-ups only.
 */

import { beforeAll, describe, expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { createApi } from "../api/server/api.ts";
import { WakeUps } from "../job/wake-up.ts";
import { LogFolder } from "../log/log-folder.ts";
import { silentLogger } from "../service/logger.ts";
import { ensureAdminToken } from "../store/access/tokens.ts";
import { adhoc, Database } from "../store/database/database.ts";
import { Collector } from "./conformance/conformance.ts";
import { PostgresSignals } from "./postgres-signals.ts";

const HOUR = 3_600_000;

let rig: SchedulerRig;
let database: Database;
let wakeUps: WakeUps;
let signals: PostgresSignals;

beforeAll(async () => {
  rig = await SchedulerRig.open();
  await rig.publish({
    "flow.ts": `
      import { dag, signal, start } from "tradewind";
      export const etl = dag("etl", {}, (d) => {
        const first = d.task("first", () => 1);
        d.task("second", { after: [first] }, () => 2);
        d.task("third", { after: [first] }, () => { throw new Error("no"); });
      });
      export const follower = dag("follower", { stop: signal("over") }, (d) => {
        d.task("react", { on: [start(signal("etl/*", undefined, { namespace: "run" }).where({ state: "failed" }))] }, () => "heard");
      });
    `,
  });
  database = Database.connect(rig.url);
  wakeUps = new WakeUps(database);
  signals = new PostgresSignals({ database, wakeUps, idleMs: HOUR });
  await rig.scheduler({ shared: false });
  return async () => {
    await signals.close();
    await wakeUps.close();
    await database.close();
  };
}, 60_000);

async function heard(namespace: string, key: string): Promise<Collector> {
  const collector = new Collector();
  await signals.listen(null, { namespace, key }, collector);
  return collector;
}

const statesOf = (collector: Collector) =>
  collector.signals.map(({ value }) => (value as { state: string }).state);

it("streams a run and its tasks in order while they happen", async () => {
  const run = await heard("run", "etl/live");
  const tasks = await heard("task", "etl/live/*");
  const id = await rig.trigger("etl", { runId: "live" });
  await run.reach(3);
  expect(statesOf(run)).toEqual(["queued", "running", "failed"]);
  expect(await rig.ended(id)).toBe("failed");
  await tasks.reach(3);
  const of = (task: string) =>
    tasks.signals
      .filter(({ key }) => key === `etl/live/${task}`)
      .map(({ value }) => (value as { state: string }).state);
  // The start of an attempt is published together with its end if it has ended by then.
  for (const [task, end] of [
    ["first", "success"],
    ["second", "success"],
    ["third", "failed"],
  ] as const)
    await expect.poll(() => of(task).at(-1), { timeout: 20_000 }).toBe(end);
}, 90_000);

it("delivers states to signal-driven runs, too", async () => {
  const follower = await rig.trigger("follower");
  await rig.until(async () => (await rig.run(follower)).state === "running", "the follower");
  await rig.ended(await rig.trigger("etl"));
  await rig.until(async () => (await rig.states(follower)).react === "success", "its reaction");
}, 90_000);

describe("a listener", () => {
  it("of other namespaces is not woken by states", async () => {
    const other = await heard("default", "*");
    const own = await heard("run", "unknown/*");
    // Both share one reader of the log: while one listener reads states, both receive what was found.
    await database.rows(
      adhoc("INSERT INTO signal (namespace, key, sender) VALUES ('default', 'unannounced', 'test')"),
    );
    wakeUps.send("states");
    await other.reach(1);
    expect(own.signals).toEqual([]);

    const quiet = new PostgresSignals({ database, wakeUps, idleMs: HOUR });
    const deaf = new Collector();
    await quiet.listen(null, { key: "k" }, deaf);
    await quiet.send([{ key: "k", value: 1 }]);
    await deaf.reach(1);
    await new Promise((resolve) => setTimeout(resolve, 500));
    await database.rows(adhoc("INSERT INTO signal (namespace, key, sender) VALUES ('default', 'k', 'test')"));
    for (const topic of ["states", "runs", "fired"] as const) wakeUps.send(topic);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(deaf.signals).toHaveLength(1);
    wakeUps.send("signals");
    await deaf.reach(2);
    await quiet.close();
  }, 60_000);
});

it("streams states over the API", async () => {
  const token = `tw_${"s".repeat(40)}`;
  await ensureAdminToken(database, token);
  const app = await createApi({
    ...{
      database,
      logger: silentLogger,
      secretBox: rig.secretBox,
      logs: new LogFolder(rig.root),
      wakeUps,
      signals,
    },
    config: { host: "127.0.0.1", port: 0, version: "0" },
    notify: (change) => wakeUps.send(change.kind === "deed_done" ? "states" : "runs"),
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  const headers = { authorization: `Bearer ${token}` };
  const stop = new AbortController();
  const response = await fetch(`${url}/api/v2/signals/listen?namespace=*&key=etl/streamed*`, {
    headers: { ...headers, accept: "text/event-stream" },
    signal: stop.signal,
  });
  let text = "";
  const seen: string[] = [];
  for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
    if (text === "")
      await fetch(`${url}/api/v2/dags/etl/dagRuns`, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body: JSON.stringify({ dag_run_id: "streamed", logical_date: null }),
      });
    text += piece;
    const blocks = text
      .split("\n\n")
      .slice(0, -1)
      .filter((block) => block.includes("event: signal"));
    seen.splice(0);
    for (const block of blocks) {
      const { key, namespace, value } = JSON.parse(/^data: (.*)$/m.exec(block)![1]!);
      seen.push(`${namespace} ${key} ${value.state ?? value.action}`);
    }
    if (seen.includes("run etl/streamed failed")) break;
  }
  stop.abort();
  await app.close();
  expect(seen).toContain("action etl/streamed trigger_dag_run");
  expect(seen).toContain("task etl/streamed/second success");
  expect(seen.filter((line) => line.startsWith("run "))).toEqual([
    "run etl/streamed queued",
    "run etl/streamed running",
    "run etl/streamed failed",
  ]);
}, 90_000);
