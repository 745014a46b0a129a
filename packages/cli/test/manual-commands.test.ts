/** Manual commands and signal-driven runs, against a real server with rows written by the test. */
import { beforeAll, describe, expect, it } from "vitest";
import { drive, drivenManifest, STARTED_AT } from "../../engine/test/api/driven.ts";
import { type Installation, manifestOf } from "../../engine/test/api/installation.ts";
import { type ServedInstallation, servedInstallation } from "./support/served-installation.ts";

let server: Installation;
let tw: ServedInstallation["tw"];
let on80Columns: ServedInstallation["on80Columns"];

beforeAll(async () => {
  ({ on80Columns, server, tw } = await servedInstallation());
  await server.addJob("scheduler");
  await server.addDag(manifestOf("etl", [{ taskId: "a" }, { taskId: "b", upstream: ["a"] }]));
  await server.addDag(drivenManifest("online"));
});

const lastOrder = async () =>
  (
    await server.sql<{ key: string; value: unknown }>(
      "SELECT key, value FROM signal WHERE namespace = 'action' ORDER BY id DESC LIMIT 1",
    )
  )[0];

describe("manual commands", () => {
  it("starts a task at once, and asks before restart and stop", async () => {
    await server.addRun("etl", { runId: "r1" });
    const started = await tw("tasks", "start", "etl", "@latest", "b");
    expect(started).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/Task b of r1 is to start \(signal \d+\)\./),
    });
    for (const action of ["restart", "stop"]) {
      const asked = await tw("tasks", action, "etl", "r1", "b");
      expect(asked).toMatchObject({ code: 2, stderr: expect.stringContaining("add --yes to confirm") });
      const done = await tw("tasks", action, "etl", "r1", "b", "--yes", "--json");
      expect(JSON.parse(done.stdout)).toMatchObject({ task_id: "b", action, version: expect.any(Number) });
      expect(await lastOrder()).toEqual({ key: "etl/r1/b", value: { action, by: "admin" } });
    }
  });

  it("clears the tasks to start in a run that has ended", async () => {
    const id = await server.addRun("etl", { runId: "over", state: "success" });
    for (const task of ["a", "b"]) await server.addInstance(id, task, { state: "success", tryNumber: 1 });
    expect(await tw("tasks", "stop", "etl", "over", "a", "--yes")).toMatchObject({
      code: 5,
      stderr: expect.stringContaining("tradewind tasks start etl over a"),
    });
    expect(await tw("tasks", "start", "etl", "over", "a")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("Run over has ended. Rerun a and its downstream tasks?"),
    });
    const cleared = await tw("tasks", "start", "etl", "over", "a", "--yes");
    expect(cleared).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("Run over had ended. Rerunning: a, b."),
    });
  });

  it("warns that a signal-driven run reopens as a whole", async () => {
    const id = await server.addRun("online", { runId: "shut", state: "success" });
    await server.addInstance(id, "train", { state: "success", tryNumber: 1 });
    expect(await tw("tasks", "start", "online", "shut", "train")).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/reopens the whole run.*tradewind runs stop online shut/),
    });
    const done = await tw("tasks", "start", "online", "shut", "train", "--yes", "--json");
    expect(JSON.parse(done.stdout)).toMatchObject({ reopened: true });
  });

  it("closes a signal-driven run", async () => {
    await server.addRun("online", { runId: "open" });
    const closed = await tw("runs", "stop", "online", "open", "--yes");
    expect(closed).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/The run open is to close \(signal/),
    });
    expect(await lastOrder()).toEqual({ key: "online/open", value: { action: "stop", by: "admin" } });
    await server.addRun("etl", { runId: "plain" });
    expect(await tw("runs", "stop", "etl", "plain", "--yes")).toMatchObject({
      code: 5,
      stderr: expect.stringContaining("tradewind runs cancel etl plain"),
    });
  });

  it("rejects unknown tasks and runs", async () => {
    expect(await tw("tasks", "start", "etl", "r1", "zzz")).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('has no task "zzz"'),
    });
    // Before asking for confirmation.
    await server.addRun("etl", { runId: "done", state: "success" });
    for (const [action, run] of [
      ["start", "done"],
      ["restart", "r1"],
      ["stop", "r1"],
    ] as const) {
      expect(await tw("tasks", action, "etl", run, "zzz")).toMatchObject({
        code: 3,
        stderr: expect.stringContaining('the run has no task "zzz"'),
      });
    }
    expect((await tw("tasks", "start", "etl", "none", "a")).code).toBe(3);
    expect((await tw("runs", "stop", "etl", "none", "--yes")).code).toBe(3);
  });
});

describe("signals conditions", () => {
  beforeAll(async () => {
    const id = await server.addRun("online", { runId: "half", startedAt: STARTED_AT });
    await drive(server, id, (each, tell) => {
      tell("a");
      tell("c");
      each.addStart("train");
      each.setStopping("serve", "ada");
    });
    const closed = await server.addRun("online", { runId: "closed", startedAt: STARTED_AT });
    await drive(server, closed, (each) => each.close("site.closed"));
  });

  it("shows a failing onSignal and its signal", async () => {
    const id = await server.addRun("online", { runId: "failing", state: "queued" });
    const asking = {
      key: "ask.it",
      version: 12,
      attempts: 3,
      error: "no idea",
      againAt: Date.now() + 60_000,
    };
    await drive(server, id, (each) => each.setFailedOnSignal("ask", asking));
    const { stdout } = await tw("signals", "conditions", "online", "failing");
    expect(stdout).toMatch(/ask +onSignal +ask\.\* .*failed 3x on ask\.it \(version 12\), next try/);
  });

  it("shows the rules of one run and the commands for its tasks", async () => {
    const { code, stdout } = await tw("signals", "conditions", "online", "half");
    expect(code).toBe(0);
    const lines = stdout
      .trimEnd()
      .split("\n")
      .map((line) => line.split(/ {2,}/).slice(2));
    expect(lines).toEqual([
      ["TASK", "ACTION", "CONDITION", "MISSING", "FIRED", "STATE"],
      ["train", "start", "1 pending"],
      ["serve", "stop", "being stopped by ada"],
      ["train", "start", "all(a, b)", "b", "0", "armed"],
      ["train", "stop", "c, once", "1", "done"],
      ["serve", "restart", 'mode = "open"', 'mode = "open"', "0", "armed"],
      ["(the run)", "stop", "closed", "closed", "0", "armed"],
      ["ask", "onSignal", "ask.*", "armed"],
      ["report", "start", "every", expect.any(String), "armed"],
    ]);
    const [shown] = JSON.parse((await tw("signals", "conditions", "online", "half", "--json")).stdout);
    expect(shown).toMatchObject({
      dag_run_id: "half",
      rules: [{ condition: "all(a, b)", missing: "b" }, {}, {}, {}],
    });
  });

  it("shows the run above its rules on a terminal of 80 columns, with uncut conditions", async () => {
    const runId = "manual__2027-01-04T17:05:05.495Z_7b7ab9ae";
    const id = await server.addRun("online", { runId, startedAt: STARTED_AT });
    await drive(server, id, (_, tell) => tell("a"));
    const lines = (await on80Columns("signals", "conditions", "online", runId)).stdout.trimEnd().split("\n");
    expect(lines[0]).toMatch(/^ {2}TASK +ACTION +CONDITION +MISSING +FIRED +STATE$/);
    expect(lines[1]).toBe(`online  ${runId}`);
    expect(lines[2]).toMatch(/^ {2}train +start +all\(a, b\) +b +0 +armed$/);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
    await server.sql("UPDATE dag_run SET state = 'success', ended_at = now() WHERE id = $1", [id]);
  });

  it("shows the rules of all signal-driven runs, or of one DAG", async () => {
    const all = await tw("signals", "conditions");
    expect(all.stdout).toMatch(/^online +half +train +start +all\(a, b\) +b +0 +armed$/m);
    expect(all.stdout).toMatch(/^online +closed .*closed by site.closed$/m);
    const names = async (...args: string[]) =>
      (
        JSON.parse((await tw("signals", "conditions", ...args, "--json")).stdout) as { dag_run_id: string }[]
      ).map(({ dag_run_id }) => dag_run_id);
    expect(await names("online")).toEqual(expect.arrayContaining(["half", "closed", "open"]));
    expect(await names("etl")).toEqual(["r1"]);
    expect((await tw("signals", "conditions", "--limit", "1")).stderr).toContain(
      "runs shown; --limit 0 shows all",
    );
  });

  it("reports runs without rules", async () => {
    await server.addDag(manifestOf("idle", [{ taskId: "a" }]));
    expect(await tw("signals", "conditions", "idle")).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("No run of idle is signal-driven."),
    });
    expect(await tw("signals", "conditions", "nothing")).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('"nothing"'),
    });
    expect((await tw("signals", "conditions", "etl", "plain")).stderr).toContain(
      "This run is not signal-driven.",
    );
    expect((await tw("signals", "conditions", "etl", "none")).code).toBe(3);
  });
});

describe("tasks why", () => {
  const why = async (runId: string, taskId: string) =>
    (await tw("tasks", "why", "online", runId, taskId)).stdout;

  it("names the signals that a task waits for", async () => {
    const id = await server.addRun("online", { runId: "why", startedAt: STARTED_AT });
    for (const taskId of ["train", "report"]) await server.addInstance(id, taskId);
    await server.addInstance(id, "load", { state: "running", tryNumber: 1, startedAt: new Date() });
    await server.addInstance(id, "serve", { state: "running", tryNumber: 1 });
    await server.addInstance(id, "ask", { state: "success", tryNumber: 1 });
    await drive(server, id, (each, tell) => {
      tell("a");
      each.setStopping("serve", "ada");
    });
    expect(await why("why", "train")).toMatch(
      /^train is pending\n {2}because it waits for a signal: all\(a, b\); b is missing \[SIGNAL\]\n {2}because its rule .*\n {4}because load is running/,
    );
    expect(await why("why", "report")).toContain("because its next tick is at 2026-01-01 11:00:00Z");
    expect(await why("why", "serve")).toBe("serve is running\n  it is being stopped by ada [STOPPING]\n");
    expect(await why("why", "ask")).toContain("it reruns on a signal, if its onSignal decides so: ask.*");
    expect(await why("why", "load")).toContain("load is running: nothing blocks it [RUNNING]\n");
    const { stdout } = await tw("tasks", "why", "online", "why", "serve", "--json");
    expect(JSON.parse(stdout)).toMatchObject({
      because: [],
      outlook: ["it is being stopped by ada"],
      reasons: [{ code: "RUNNING" }, { code: "STOPPING" }],
    });
  });
});
