/** Commands about waits, against a real server with rows written by the test. */
import {
  all,
  any,
  FileTrigger,
  HttpTrigger,
  serialise,
  TimeDeltaTrigger,
  type Waitable,
} from "@tradewind/sdk";
import { beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { type Installation, manifestOf } from "../../engine/test/api/installation.ts";
import { addTrigger, addTriggerer, addWait } from "../../engine/test/api/waits.ts";
import { type ServedInstallation, servedInstallation } from "./support/served-installation.ts";

let server: Installation;
let triggerer: number;
let shared: number;
let schedule: number;
let tw: ServedInstallation["tw"];
let on80Columns: ServedInstallation["on80Columns"];

beforeAll(async () => {
  ({ on80Columns, server, tw } = await servedInstallation());
  await server.addDag(manifestOf("etl", [{ taskId: "wait" }, { taskId: "sleep" }, { taskId: "idle" }]));
  const run = await server.addRun("etl", { runId: "r1" });
  triggerer = await addTriggerer(server, { host: "alpha" });
  shared = await addTrigger(server, {
    kind: "file",
    args: { path: "/in/orders.csv", password: "hunter2" },
    owner: triggerer,
    polledAt: new Date(Date.now() - 5_000),
  });
  const since = new Date(Date.now() - 4_000_000);
  const timeoutAt = new Date(Date.now() + 7_500_000);
  for (let mapIndex = 0; mapIndex < 120; mapIndex++) {
    await addWait(server, { dagRunId: run, taskId: "wait", mapIndex, triggerId: shared, since, timeoutAt });
  }
  const timed = await addTrigger(server, {
    kind: "time",
    timed: {},
    wakeAt: new Date(Date.now() + 60_000),
    queue: "slow",
  });
  await addWait(server, { dagRunId: run, taskId: "sleep", triggerId: timed, kind: "time" });
  schedule = await addTrigger(server, { kind: "webhook", dagId: "etl", args: { name: "orders" } });
});

describe("triggers", () => {
  it("lists triggers as table, JSON and YAML, and by filter", async () => {
    const { code, stdout } = await tw("triggers", "list");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ *ID +KIND +STATE +WAITING +TRIGGERER +POLLED +QUEUE +ARGUMENTS$/m);
    expect(stdout).toMatch(
      new RegExp(
        `^ *${shared} +file +hot +120 +${triggerer} on alpha +\\d+ s ago +default +path=/in/orders.csv, password=\\*\\*\\*$`,
        "m",
      ),
    );
    expect(stdout).toMatch(new RegExp(`^ *${schedule} +webhook +unowned +DAG etl +- `, "m"));
    const kinds = (text: string, read: (text: string) => unknown) =>
      (read(text) as { kind: string }[]).map(({ kind }) => kind);
    expect(kinds((await tw("triggers", "list", "--json")).stdout, JSON.parse)).toEqual([
      "file",
      "time",
      "webhook",
    ]);
    const timed = await tw("triggers", "list", "--state", "timed", "--queue", "slow", "-o", "yaml");
    expect(kinds(timed.stdout, parse)).toEqual(["time"]);
    const none = await tw("triggers", "list", "--kind", "none-such");
    expect(none).toMatchObject({ code: 0, stdout: "", stderr: expect.stringContaining("No triggers match") });
  });

  it("shows a trigger with its first waiting tasks", async () => {
    const { code, stderr, stdout } = await tw("triggers", "show", String(shared));
    expect(code).toBe(0);
    expect(stdout).toMatch(/^arguments +path=\/in\/orders\.csv, password=\*\*\*$/m);
    expect(stdout).toMatch(new RegExp(`^triggerer +${triggerer} on alpha$`, "m"));
    expect(stdout).toMatch(/^waiting +120 tasks$/m);
    expect(stdout.match(/^wait\[\d+\] +etl +r1 +1 h ago +in 2 h$/gm)).toHaveLength(100);
    expect(stderr).toContain(`100 of 120 shown: \`tradewind waiting --trigger ${shared}\``);
    expect(JSON.parse((await tw("triggers", "show", String(shared), "--json")).stdout).waits).toHaveLength(
      100,
    );
  });

  it("reports a missing trigger", async () => {
    const missing = await tw("triggers", "show", "99999");
    expect([missing.code, missing.stdout]).toEqual([3, ""]);
    expect(missing.stderr).toContain("has fired");
    expect((await tw("triggers", "show", "x")).code).toBe(2);
    expect((await tw("triggers", "list", "--state", "warm")).code).toBe(2);
  });
});

describe("waiting", () => {
  it("shows the longest wait first, and the total", async () => {
    const { stderr, stdout } = await tw("waiting");
    const lines = stdout.trimEnd().split("\n");
    expect(lines[0]).toMatch(/^TASK +DAG +RUN +SINCE +UNTIL +ON +TRIGGERER +POLLED +ARGUMENTS$/);
    expect(lines[1]).toMatch(
      new RegExp(`^wait\\[0\\] +etl +r1 +1 h ago +in 2 h +file +${triggerer} on alpha +`),
    );
    expect(lines).toHaveLength(51);
    expect(stderr).toContain("50 of 121 shown");
  });

  it("shows all waits, page by page, in the same order", async () => {
    const all = JSON.parse((await tw("waiting", "--limit", "0", "--json")).stdout) as {
      task_id: string;
      map_index: number;
      since: string;
    }[];
    expect(all).toHaveLength(121);
    expect(all.at(-1)).toMatchObject({ task_id: "sleep" });
    expect(new Set(all.map(({ map_index }) => map_index)).size).toBe(121);
  });

  it("is filtered", async () => {
    const { stdout } = await tw("waiting", "--dag", "etl", "--run", "r1", "--kind", "time");
    expect(stdout).toMatch(/^sleep +etl +r1 .* +- +time +timed/m);
    expect(stdout).not.toContain("wait[");
    expect((await tw("waiting", "--task", "none")).stderr).toContain("Nothing waits.");
  });

  it.each([
    [["waiting", "--dag", "etk"], /DAG "etk" does not exist .*\n.*did you mean "etl"\?/],
    [["waiting", "--limit", "0", "--dag", "etk"], /DAG "etk" does not exist /],
    [["waiting", "--dag", "etl", "--run", "r2"], /has no run "r2" .*\n.*did you mean "r1"\?/],
    [["waiting", "--run", "r"], /no DAG has a run "r"\. \[NOT_FOUND\]/],
    [["waiting", "--dag", "etl", "--task", "wat"], /has no task "wat" .*\n.*did you mean "wait"\?/],
    [["waiting", "--dag", "etl", "--run", "r1", "--task", "wat"], /"wat" .*\n.*did you mean "wait"\?/],
    [["triggers", "list", "--dag", "etk"], /DAG "etk" does not exist .*\n.*did you mean "etl"\?/],
    [["deadlines", "list", "--dag", "etk"], /DAG "etk" does not exist /],
    [["deadlines", "list", "--dag", "etl", "--run", "r2"], /has no run "r2" /],
    [["deliveries", "list", "--dag", "etk"], /DAG "etk" does not exist /],
    [["deliveries", "retry", "--all", "--dag", "etk"], /DAG "etk" does not exist /],
    [["assets", "list", "--dag", "etk"], /DAG "etk" does not exist /],
    [["assets", "events", "--dag", "etk"], /DAG "etk" does not exist /],
    [["backfill", "list", "etk"], /DAG "etk" does not exist /],
    [["signals", "conditions", "etk"], /DAG "etk" does not exist /],
    [["runs", "list", "--parent", "etl/r2"], /has no run "r2" .*\n.*did you mean "r1"\?/],
  ])("rejects a filter for an object that does not exist: %j", async (argv, message) => {
    const { code, stderr, stdout } = await tw(...argv);
    expect([code, stdout]).toEqual([3, ""]);
    expect(stderr).toMatch(message);
  });

  it.each([
    [["waiting", "--dag", "etl", "--run", "r1", "--task", "idle"]],
    [["waiting", "--run", "r1", "--kind", "none"]],
    [["triggers", "list", "--dag", "etl", "--kind", "none"]],
    [["deadlines", "list", "--dag", "etl", "--run", "r1", "--task", "idle"]],
  ])("is empty without an error if the filtered object exists: %j", async (argv) => {
    expect(await tw(...argv)).toMatchObject({ code: 0, stdout: "" });
  });

  it("matches the reason of `tasks why`", async () => {
    const { stdout } = await tw("tasks", "why", "etl", "r1", "wait", "--map-index", "3");
    expect(stdout).toContain("because it waits on file(path=/in/orders.csv, password=***) since");
    expect(stdout).toContain(`on triggerer ${triggerer} (alpha), last polled at`);
  });
});

describe("joint waits", () => {
  const s = new TimeDeltaTrigger({ delta: "10m" });
  const ten = "tradewind.datetime(moment=…, delta=10 m)";
  const http = new HttpTrigger({ url: "http://in/x?sig=hunter2", headers: { authorization: "hunter2" } });
  const sig = new FileTrigger({ path: "/in/x.csv", interval: "5s" });
  const file = "tradewind.file(path=/in/x.csv, interval=5 s)";

  const withoutMoments = (text: string) => text.replaceAll(/moment=[^,]+/g, "moment=…");

  it.each([
    ["all", all({ sig, s }), `all of sig: ${file} [open], s: ${ten} [open]`],
    ["any by name", any({ sig, token: s }), `first of sig: ${file} [open], token: ${ten} [open]`],
    ["any by position", any(sig, s), `first of ${file} [open], ${ten} [open]`],
    [
      "all inside any",
      any({ both: all({ sig, s }), sig }),
      `first of both: (all of sig: ${file}, s: ${ten}) [open], sig: ${file} [open]`,
    ],
  ])("shows the members and their arguments: %s", async (title, trigger, text) => {
    const { id, runId, kind } = await addJointWait(title, trigger);
    for (const argv of [
      ["waiting", "--run", runId],
      ["triggers", "list", "--kind", kind],
      ["triggers", "show", id],
    ])
      expect(withoutMoments((await tw(...argv)).stdout)).toContain(`  ${text}\n`);
    const why = await tw("tasks", "why", "etl", runId, "sleep");
    expect(withoutMoments(why.stdout)).toContain(`because it waits on ${text} since`);
  });

  it("marks fired and open members while the triggerer that saw them is alive", async () => {
    const { id, runId } = await addJointWait("fired", all({ sig, s, other: sig }));
    const owner = await addTriggerer(server, { facts: { fired: { [id]: [0, 2] } } });
    await server.sql("UPDATE trigger SET owner_job = $2 WHERE id = $1", [id, owner]);
    const text = `all of sig: ${file} [fired], s: ${ten} [open], other: ${file} [fired]`;
    expect(withoutMoments((await tw("waiting", "--run", runId)).stdout)).toContain(`  ${text}\n`);
    expect(withoutMoments((await tw("triggers", "show", id)).stdout)).toContain(`  ${text}\n`);
    const why = async () => withoutMoments((await tw("tasks", "why", "etl", runId, "sleep")).stdout);
    expect(await why()).toContain(`because it waits on ${text} since`);
    const [wait] = JSON.parse((await tw("waiting", "--run", runId, "--json")).stdout);
    expect(wait.members).toEqual([
      { name: "sig", state: "fired" },
      { name: "s", state: "open" },
      { name: "other", state: "fired" },
    ]);
    await server.sql("UPDATE job SET lease_until = now() WHERE id = $1", [owner]);
    expect(await why()).toContain(`all of sig: ${file} [open], s: ${ten} [open], other: ${file} [open]`);
  });

  it("masks secrets in the arguments of members, but not members with such a name", async () => {
    const { id, runId } = await addJointWait("secrets", all({ token: any({ password: http }), sig }));
    const shown = await tw("triggers", "show", id, "--json");
    expect(JSON.parse(shown.stdout).args.members).toMatchObject({
      sig: { kind: "tradewind.file", args: { path: "/in/x.csv" } },
      token: {
        kind: "tradewind.any",
        args: {
          members: {
            password: { args: { url: "http://in/x?sig=***", headers: { authorization: "***" } } },
          },
        },
      },
    });
    const task = await server.call("GET", `/dags/etl/dagRuns/${runId}/taskInstances/sleep`);
    expect(JSON.parse(task.json().trigger.kwargs).members.sig).toMatchObject({ kind: "tradewind.file" });
    const outputs = [
      shown,
      await tw("triggers", "show", id),
      await tw("waiting", "--run", runId),
      await tw("tasks", "why", "etl", runId, "sleep"),
    ].map(({ stdout }) => stdout);
    for (const output of [...outputs, task.body]) {
      expect(output).toContain("http://in/x?sig=***");
      expect(output).not.toContain("hunter2");
    }
  });
});

async function addJointWait(title: string, trigger: Waitable<unknown>) {
  const runId = `joint ${title}`;
  const { args, kind } = serialise(trigger);
  const id = await addTrigger(server, { kind, args });
  const dagRunId = await server.addRun("etl", { runId });
  await addWait(server, { dagRunId, taskId: "sleep", triggerId: id, kind });
  return { id: String(id), runId, kind };
}

it("shows the run above its tasks on a terminal of 80 columns, and what each waits for", async () => {
  const runId = "manual__2027-01-04T17:05:05.495Z_7b7ab9ae";
  const dagRunId = await server.addRun("etl", { runId });
  const path = "/in/2027-01-04.csv";
  const triggerId = await addTrigger(server, { kind: "file", args: { path }, owner: triggerer });
  for (const taskId of ["wait", "sleep"]) await addWait(server, { dagRunId, taskId, triggerId });
  const { stdout } = await on80Columns("waiting", "--run", runId);
  const [head, heading, ...rows] = stdout.trimEnd().split("\n");
  expect(head).toMatch(/^ {2}TASK +SINCE +UNTIL +ON .*ARGUMENTS$/);
  expect(heading).toBe(`etl  ${runId}`);
  expect(rows).toHaveLength(2);
  for (const row of rows) {
    expect(row).toMatch(/^ {2}(?:wait|sleep) +\d+ s ago +- +file .*path=\/in\/2027-01-04\.csv$/);
    expect(row.length).toBeLessThanOrEqual(80);
  }
});

describe("webhooks", () => {
  it("prints a URL that works without a token", async () => {
    const { code, stderr, stdout } = await tw("webhooks", "url", "orders");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/api\/v2\/webhooks\/orders\?signature=[\w-]{43}\n$/);
    expect(stderr).toContain("without a token");
    expect((await fetch(stdout.trim(), { method: "POST", body: "paid" })).status).toBe(202);
    expect(JSON.parse((await tw("webhooks", "url", "orders", "--json")).stdout)).toMatchObject({
      url: stdout.trim(),
    });
  });

  it("sends", async () => {
    expect((await tw("webhooks", "send", "sent", "--data", '{"id":7}')).stderr).toMatch(
      /Webhook sent sent: position \d+/,
    );
    expect((await tw("webhooks", "send", "sent")).code).toBe(0);
    const rows = await server.sql<{ value: { body: unknown } }>(
      "SELECT value FROM signal WHERE key = 'sent' ORDER BY id",
    );
    expect(rows.map(({ value }) => value.body)).toEqual([{ id: 7 }, null]);
  });

  it("rejects invalid names and data", async () => {
    const bad = await tw("webhooks", "url", "no spaces");
    expect([bad.code, bad.stderr]).toEqual([2, expect.stringContaining("A-Z a-z 0-9")]);
    const data = await tw("webhooks", "send", "x", "--data", "{");
    expect([data.code, data.stderr]).toEqual([2, expect.stringContaining("not valid JSON")]);
  });
});

it("counts deferred tasks in a pool with include_deferred", async () => {
  expect((await tw("pools", "set", "slow", "3", "--include-deferred")).code).toBe(0);
  expect((await tw("pools", "show", "slow")).stdout).toMatch(/^counts deferred +yes$/m);
  await tw("pools", "set", "slow", "4");
  expect((await tw("pools", "show", "slow")).stdout).toMatch(/^counts deferred +yes$/m);
  await tw("pools", "set", "slow", "4", "--no-include-deferred");
  expect((await tw("pools", "show", "slow")).stdout).toMatch(/^counts deferred +no$/m);
});
