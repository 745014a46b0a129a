/** The live stream while real runs happen, in a scheduler of another process. */
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { LiveBrowser } from "../../../test/api/live-browser.ts";
import { SchedulerRig } from "../../../test/support/scheduler-rig.ts";
import { WakeUps } from "../../job/wake-up.ts";
import { LogFolder } from "../../log/log-folder.ts";
import { passOn } from "../../process/api.ts";
import { silentLogger } from "../../service/logger.ts";
import { ensureAdminToken } from "../../store/access/tokens.ts";
import { adhoc, Database } from "../../store/database/database.ts";
import { createApi } from "../server/api.ts";

let rig: SchedulerRig;
let connection: { url: string; headers: Record<string, string> };

beforeAll(async () => {
  rig = await SchedulerRig.open();
  await rig.publish({
    "flow.ts": `
      import { dag } from "tradewind";
      import { existsSync } from "node:fs";
      import { setTimeout as sleep } from "node:timers/promises";
      export const etl = dag("etl", {}, (d) => {
        const first = d.task("first", () => 1);
        d.task("second", { inputs: { first }, retries: 1, retryDelay: "1s" }, (_, ctx) => {
          if (ctx.tryNumber === 1) throw new Error("no");
        });
        d.map("each", { over: d.task("list", () => [1, 2, 3]) }, (item) => item);
      });
      export const full = dag("full", {}, (d) => {
        for (const n of [0, 1, 2])
          d.task("t" + n, { pool: "narrow" }, async () => {
            while (!existsSync(${JSON.stringify(join(rig.root, "open"))})) await sleep(20);
          });
      });
      export const asked = dag("asked", {}, (d) => void d.approval("ok", {}));
      export const child = dag("child", {}, (d) => void d.task("only", () => 1));
      export const parent = dag("parent", {}, (d) => void d.dag("kid", child));
    `,
  });
  const token = `tw_${randomBytes(32).toString("base64url")}`;
  await ensureAdminToken(rig.db, token);
  const database = Database.connect(rig.url);
  const wakeUps = new WakeUps(database);
  const app = await createApi({
    ...{ database, logger: silentLogger, secretBox: rig.secretBox, logs: new LogFolder(rig.root), wakeUps },
    config: { host: "127.0.0.1", port: 0, version: "0" },
    notify: (change) => passOn(change, wakeUps),
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  connection = { url, headers: { authorization: `Bearer ${token}` } };
  await rig.scheduler({ shared: false });
  await rig.triggerer({ shared: false });
  return async () => {
    const closed = app.close();
    // Connections that a client has given up are not idle for the server yet.
    app.server.closeAllConnections();
    await closed;
    await wakeUps.close();
    await database.close();
  };
}, 60_000);

it("sends the states of a run and of its tasks", async () => {
  const browser = await LiveBrowser.open(connection, ["run:etl/live", "dag:etl", "runs", "home"]);
  const id = await rig.trigger("etl", { runId: "live" });
  expect(await rig.ended(id)).toBe("success");
  const messages = () => browser.of("run:etl/live");
  const last = () => new Map(messages().flatMap(({ tasks }) => tasks.map((task) => [keyOf(task), task])));
  await browser.reach(() => messages().some(({ run }) => run?.state === "success"));
  await browser.reach(() => [...last().values()].every(({ state }) => state === "success"));
  expect([...last().keys()].toSorted()).toEqual([
    ...["each 0", "each 1", "each 2", "first -1", "list -1", "second -1"],
  ]);
  expect(last().get("second -1")).toMatchObject({ try_number: 2 });
  const tries = messages().flatMap(({ tasks }) => tasks.filter(({ task_id }) => task_id === "second"));
  expect(tries.map(({ state, try_number }) => `${state} ${try_number}`)).toContain("up_for_retry 1");
  for (const runs of [browser.of("runs"), browser.of("dag:etl")].map((of) => of.flatMap((each) => each.runs)))
    expect(runs.at(-1)).toMatchObject({
      dag_id: "etl",
      run_id: "live",
      run_type: "manual",
      state: "success",
    });
  await browser.reach(() => browser.of("home").some(({ parts }) => parts.includes("runs")));
}, 60_000);

it("sends tasks that wait for a slot, of which the log has no signal", async () => {
  await rig.db.rows(adhoc("INSERT INTO pool (name, slots) VALUES ('narrow', 1)"));
  const browser = await LiveBrowser.open(connection, ["run:full/f"]);
  const id = await rig.trigger("full", { runId: "f" });
  const states = () => browser.of("run:full/f").flatMap(({ tasks }) => tasks.map(({ state }) => state));
  await browser.reach(() => states().filter((state) => state === "scheduled").length >= 2);
  expect(states()).not.toContain("success");
  await writeFile(join(rig.root, "open"), "");
  expect(await rig.ended(id)).toBe("success");
  const ended = () =>
    new Set(
      browser
        .of("run:full/f")
        .flatMap(({ tasks }) => tasks.filter(({ state }) => state === "success").map(keyOf)),
    );
  await browser.reach(() => ended().size === 3);
}, 60_000);

it("names the run that started another, and what users did", async () => {
  const browser = await LiveBrowser.open(connection, ["run:parent/p", "run:etl/edited", "runs"]);
  const edited = await rig.trigger("etl", { runId: "edited" });
  await rig.ended(await rig.trigger("parent", { runId: "p" }));
  await browser.reach(() => browser.of("run:parent/p").some(({ parts }) => parts.includes("children")));
  await rig.ended(edited);
  const path = `${connection.url}/api/v2/dags/etl/dagRuns/edited`;
  const headers = { ...connection.headers, "content-type": "application/json" };
  await fetch(path, { method: "PATCH", headers, body: JSON.stringify({ note: "seen" }) });
  await browser.reach(() => browser.of("run:etl/edited").some(({ parts }) => parts.includes("actions")));
  await fetch(path, { method: "DELETE", headers: connection.headers });
  await browser.reach(() =>
    browser.of("run:etl/edited").some(({ run }) => run !== null && run.state === null),
  );
  expect(browser.of("runs").at(-1)!.runs).toMatchObject([{ run_id: "edited", state: null, run_type: null }]);
}, 60_000);

it("sends approvals that are opened and answered", async () => {
  const browser = await LiveBrowser.open(connection, ["approvals", "waiting", "run:asked/a"]);
  const id = await rig.trigger("asked", { runId: "a" });
  const messages = () => browser.of("approvals");
  await browser.reach(() => messages().length > 0);
  expect(messages()[0]).toMatchObject({ open: 1, opened: [{ dag_id: "asked", run_id: "a", task_id: "ok" }] });
  const approval = messages()[0]!.opened[0]!.id;
  await fetch(`${connection.url}/api/v2/approvals/${approval}/answer`, {
    method: "POST",
    headers: { ...connection.headers, "content-type": "application/json" },
    body: JSON.stringify({ decision: "approve" }),
  });
  await browser.reach(() => messages().some(({ closed }) => closed.includes(approval)));
  expect(messages().at(-1)).toEqual({ topic: "approvals", open: 0, opened: [], closed: [approval] });
  expect(await rig.ended(id)).toBe("success");
  const states = () => browser.of("run:asked/a").flatMap(({ tasks }) => tasks.map(({ state }) => state));
  await browser.reach(() => states().at(-1) === "success");
  expect(states()).toContain("deferred");
  expect(browser.of("waiting").length).toBeGreaterThan(0);
}, 60_000);

function keyOf({ map_index, task_id }: { readonly task_id: string; readonly map_index: number }): string {
  return `${task_id} ${map_index}`;
}
