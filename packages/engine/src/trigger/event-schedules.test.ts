import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { beforeEach, expect, it } from "vitest";
import { seedDag } from "../../test/support/catalogue-seed.ts";
import { pgProxy } from "../../test/support/pg-proxy.ts";
import { triggerRow } from "../../test/support/trigger-seed.ts";
import { LONG_LEASE, TriggererRig } from "../../test/support/triggerer-rig.ts";
import { adhoc } from "../store/database/database.ts";
import { recordWebhook } from "../store/trigger/webhooks.ts";

let rig: TriggererRig;
beforeEach(async () => {
  rig = await TriggererRig.open();
  return () => rig.close();
});

/**
 * A source that delivers its entries again until they are acknowledged: a folder of files, removed after the yield.
 * Endless: waits for more files.
 */
const FOLDER = `
  const fs = await import("node:fs");
  while (!host.abort.aborted) {
    for (const name of fs.readdirSync(args.folder).sort()) {
      if (host.abort.aborted) return;
      yield name;
      fs.rmSync(args.folder + "/" + name);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }`;

async function feed(body: string, args: object, replicas: 1 | 2 = 1): Promise<number> {
  await seedDag(rig.db, "feed");
  const bundle = await rig.bundle("demo.feed", body);
  const id = await rig.trigger("demo.feed", bundle, { dagId: "feed", args: args as never, replicas });
  await rig.notify("triggers");
  return id;
}

async function folder(entries: readonly string[]): Promise<string> {
  const { mkdir, writeFile } = await import("node:fs/promises");
  const path = `${rig.root}/entries`;
  await mkdir(path, { recursive: true });
  for (const entry of entries) await writeFile(`${path}/${entry}`, "");
  return path;
}

const events = async () =>
  (
    await rig.db.rows<{ conf: { event: unknown } }>(
      adhoc("SELECT conf FROM dag_run WHERE dag_id = 'feed' ORDER BY id"),
    )
  ).map(({ conf }) => conf.event);

it("creates one run per event, equal events included, in order", async () => {
  await rig.triggerer({ lease: LONG_LEASE });
  await feed(`for (const each of args.list) yield each; await new Promise(() => {});`, {
    list: ["a", "b", "b", "a"],
  });
  await rig.until(async () => (await events()).length === 4, "four runs");
  expect(await events()).toEqual(["a", "b", "b", "a"]);
});

it("stores an event before it acknowledges it: no event is lost or doubled when answers to commits get lost", async () => {
  const proxy = await pgProxy(rig.url);
  await rig.triggerer({ url: proxy.url });
  const names = Array.from({ length: 20 }, (_, n) => `e${String(n).padStart(2, "0")}`);
  proxy.set({ kind: "drop-commit-answer", probability: 0.3 });
  await feed(FOLDER, { folder: await folder(names) });
  await rig.until(async () => (await events()).length >= 20, "all runs", 40_000);
  proxy.set({ kind: "pass" });
  expect(await events()).toEqual(names);
  expect(proxy.faults.dropped).toBeGreaterThan(0);
  await proxy.close();
}, 60_000);

it("receives an event again that its triggerer could not store before it was cut off", async () => {
  const proxy = await pgProxy(rig.url);
  const first = await rig.triggerer({ url: proxy.url });
  const path = await folder([]);
  const id = await feed(FOLDER, { folder: path });
  await rig.until(() => first.job.size === 1, "the trigger to run");
  proxy.set({ kind: "cut" });
  await folder(["only"]);
  // The first triggerer has received the event and cannot store it; its job row is dead.
  await rig.db.rows(adhoc("UPDATE job SET state = 'dead', lease_until = now() WHERE id = $1"), [
    first.job.jobId,
  ]);
  const second = await rig.triggerer();
  await rig.until(async () => (await events()).length === 1, "the event's run");
  expect((await triggerRow(rig.db, id))?.owner_job).toBe(second.job.jobId);
  const former = first.job.jobId;
  proxy.set({ kind: "pass" });
  await rig.until(() => first.job.jobId !== former, "the first to come back");
  expect(await events()).toEqual(["only"]);
  await first.stop();
  await proxy.close();
});

it("creates one run for an event that two replicas report", async () => {
  await Promise.all([rig.triggerer(), rig.triggerer()]);
  const body = `
    const fs = await import("node:fs");
    while (!fs.existsSync(args.go)) await new Promise((r) => setTimeout(r, 20));
    for (const each of args.list) yield each;
    fs.writeFileSync(args.go + process.pid, "");
    await new Promise(() => {});`;
  const { readdir, writeFile } = await import("node:fs/promises");
  const path = await folder([]);
  const id = await feed(body, { list: ["a", "b", "c"], go: `${path}/go` }, 2);
  await rig.until(async () => (await triggerRow(rig.db, id))?.standby_job != null, "a second to run it");
  await writeFile(`${path}/go`, "");
  await rig.until(async () => (await readdir(path)).length === 3, "both to have all events acknowledged");
  expect((await events()).sort()).toEqual(["a", "b", "c"]);
});

it("sleeps while its DAG is paused, and restarts after a failure", async () => {
  const { job } = await rig.triggerer({ lease: LONG_LEASE });
  const id = await feed(`await new Promise((resolve) => host.abort.addEventListener("abort", resolve));`, {});
  await rig.until(() => job.size === 1, "the trigger to run");
  await rig.db.rows(adhoc("UPDATE dag SET is_paused = true WHERE dag_id = 'feed'"));
  await rig.notify("dags");
  await rig.until(() => job.size === 0, "it to sleep");
  await rig.until(async () => (await triggerRow(rig.db, id))?.owner_job === null, "it to be let go");
  await rig.db.rows(adhoc("UPDATE dag SET is_paused = false WHERE dag_id = 'feed'"));
  await rig.notify("dags");
  await rig.until(() => job.size === 1, "it to run again");

  await seedDag(rig.db, "broken");
  const bundle = await rig.bundle("demo.broken", `throw new Error("no connection");`);
  const broken = await rig.trigger("demo.broken", bundle, { dagId: "broken" });
  await rig.notify("triggers");
  await rig.until(async () => {
    const row = await triggerRow(rig.db, broken);
    return row?.owner_job === null && row.wake_at.getTime() > Date.now() + 20_000;
  }, "it to be put off");
});

/** As if the DAG had been published with this end; null: without an end. */
const endAt = (end: string | null) =>
  rig.db.rows(
    adhoc(
      "UPDATE dag_version SET manifest = manifest || jsonb_build_object('end', $1::text) WHERE dag_id = 'feed'",
    ),
    [end],
  );

it("creates no run after the end of its DAG: releases the trigger, and receives the event again if the end is removed", async () => {
  const { job } = await rig.triggerer({ lease: LONG_LEASE });
  const path = await folder(["first"]);
  const id = await feed(FOLDER, { folder: path });
  await rig.until(async () => (await events()).length === 1, "the first event's run");
  await endAt("2026-01-01T00:00:00Z");
  await folder(["second"]);
  // No comparison runs meanwhile: the trigger is dropped because of its event, and the event is not acknowledged.
  await rig.until(() => job.size === 0, "it to be stopped");
  await rig.notify("dags");
  await rig.until(async () => (await triggerRow(rig.db, id))?.owner_job === null, "it to be let go");
  const { attempt } = await rig.wait("demo.now", await rig.bundle("demo.now", "yield 1;"));
  await rig.outcome(attempt);
  expect((await triggerRow(rig.db, id))?.owner_job).toBeNull();
  expect(await events()).toEqual(["first"]);
  await endAt(null);
  await rig.notify("dags");
  await rig.until(async () => (await events()).length === 2, "the second event's run");
  expect(await events()).toEqual(["first", "second"]);
});

const paths = async () => (await events()).map((event) => (event as { path: string }).path.split("/").at(-1));

it("creates one run per file, also if another triggerer sees the file again, and another run when the file changes", async () => {
  const path = await folder(["sched-1.csv", "sched-2.csv"]);
  await seedDag(rig.db, "feed");
  const args = { path: `${path}/sched-*.csv`, intervalMs: 50 };
  const id = await rig.trigger("tradewind.file", null, { dagId: "feed", args });
  const first = await rig.triggerer({ lease: LONG_LEASE });
  await rig.until(async () => (await events()).length === 2, "a run of each");
  const { writeFile } = await import("node:fs/promises");
  const pid = first.runner.pid!;
  process.kill(pid, "SIGKILL");
  await rig.until(() => first.runner.pid !== undefined && first.runner.pid !== pid, "another process");
  await writeFile(`${path}/sched-3.csv`, "");
  await rig.until(async () => (await events()).length === 3, "a run of the third");
  await first.stop();
  // It must not notice that its job is dead: it would start again and might be the first to take over.
  const second = await rig.triggerer({ lease: LONG_LEASE });
  await writeFile(`${path}/sched-4.csv`, "");
  await rig.until(async () => (await events()).length === 4, "a run of the fourth");
  // Its job row is dead, so the other triggerers take over.
  await rig.db.rows(adhoc("UPDATE job SET state = 'dead', lease_until = now() WHERE id = $1"), [
    second.job.jobId,
  ]);
  const third = await rig.triggerer();
  await rig.until(async () => (await triggerRow(rig.db, id))?.owner_job === third.job.jobId, "a take-over");
  await writeFile(`${path}/sched-1.csv`, "once more");
  await rig.until(async () => (await events()).length === 5, "a run of the changed one");
  expect(await paths()).toEqual([...[1, 2, 3, 4].map((n) => `sched-${n}.csv`), "sched-1.csv"]);
}, 60_000);

it("creates no second run for a state that another triggerer has seen, and one when the state has ended and returned", async () => {
  const server = createServer((_, response) => response.writeHead(status, {}).end(`${Math.random()}`));
  let status = 200;
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  await seedDag(rig.db, "feed");
  const http = { method: "GET", headers: {}, connection: null, status: null, json: null, body: null };
  const args = { url: `http://127.0.0.1:${port}/`, ...http, intervalMs: 20 };
  const id = await rig.trigger("tradewind.http", null, { dagId: "feed", args });
  const asked = async () => {
    let looks = 0;
    const count = () => void looks++;
    server.on("request", count);
    await rig.until(() => looks >= 3, "three looks");
    server.off("request", count);
  };
  const remembered = adhoc("SELECT 1 FROM trigger_memory WHERE trigger_id = $1");
  const first = await rig.triggerer({ lease: LONG_LEASE });
  await rig.until(async () => (await events()).length === 1, "the first run");
  await first.stop();
  const second = await rig.triggerer({ lease: LONG_LEASE });
  await asked();
  expect(await events()).toHaveLength(1);
  status = 404;
  await rig.until(async () => (await rig.db.one(remembered, [id])) === undefined, "its end to be seen");
  await second.stop();
  status = 200;
  await rig.triggerer({ lease: LONG_LEASE });
  await rig.until(async () => (await events()).length === 2, "the second run");
  await asked();
  expect(await events()).toHaveLength(2);
  server.close();
}, 60_000);

it("creates one run per webhook call since the DAG was published", async () => {
  await seedDag(rig.db, "feed");
  const ring = (body: string) =>
    rig.db.transaction((tx) =>
      recordWebhook(tx, { name: "orders", sender: "test", value: { body, headers: {} } }),
    );
  await ring("too early");
  await rig.trigger("tradewind.webhook", null, { dagId: "feed", args: { name: "orders", after: null } });
  await ring("first");
  const first = await rig.triggerer({ lease: LONG_LEASE });
  await rig.until(async () => (await events()).length === 1, "the first call's run");
  await Promise.all(["second", "second"].map(ring));
  await rig.notify("fired");
  await rig.until(async () => (await events()).length === 3, "three runs");
  await first.stop();
  await rig.triggerer();
  await ring("third");
  await rig.until(async () => (await events()).length === 4, "four runs");
  const bodies = (await events()).map((event) => (event as { body: string }).body);
  expect(bodies).toEqual(["first", "second", "second", "third"]);
});

it("finds the calls that arrived while its triggerer was cut off for a long time", async () => {
  await seedDag(rig.db, "feed");
  const id = await rig.trigger("tradewind.webhook", null, {
    dagId: "feed",
    args: { name: "orders", after: null },
  });
  const longAgo = "UPDATE trigger SET created_at = now() - interval '1 hour' WHERE id = $1";
  await rig.db.rows(adhoc(longAgo), [id]);
  const proxy = await pgProxy(rig.url);
  const { job } = await rig.triggerer({ url: proxy.url });
  await rig.until(() => job.size === 1, "the webhook to be looked at");
  await rig.heartbeats(job.jobId, 2);
  proxy.set({ kind: "cut" });
  // Long enough that the time of the last poll is recorded before the next poll.
  const isOver = adhoc("SELECT 1 FROM job WHERE id = $1 AND lease_until < now() - interval '9 seconds'");
  await rig.until(async () => (await rig.db.one(isOver, [job.jobId])) !== undefined, "a long time");
  // As if it had been minutes: a call that is older than the period a poll looks back over.
  await rig.db.transaction((tx) =>
    recordWebhook(tx, { name: "orders", sender: "test", value: { body: "meanwhile", headers: {} } }),
  );
  await rig.db.rows(
    adhoc("UPDATE signal SET created_at = now() - interval '2 minutes' WHERE key = 'orders'"),
  );
  proxy.set({ kind: "pass" });
  await rig.until(async () => (await events()).length === 1, "the call's run");
  await proxy.close();
}, 60_000);
