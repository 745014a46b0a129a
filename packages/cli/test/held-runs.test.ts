/** `runs show` of a run that does not start, against a real server with rows written by the test. */
import { beforeAll, expect, it } from "vitest";
import { Installation, manifestOf } from "../../engine/test/api/installation.ts";
import { runCaptured } from "./support/captured-host.ts";

let server: Installation;
let url: string;
const show = async (run: string, ...more: string[]) =>
  (
    await runCaptured(["runs", "show", "etl", run, ...more], {
      env: { TRADEWIND_URL: url, TRADEWIND_TOKEN: server.token },
    })
  ).stdout;

beforeAll(async () => {
  server = await Installation.open();
  url = await server.app.listen({ host: "127.0.0.1", port: 0 });
  await server.addDag(manifestOf("etl", [{ taskId: "a" }], { maxActiveRuns: 1 }));
  await server.addRun("etl", { runId: "queued", state: "queued" });
});

it("names the missing scheduler of a queued run, as `tasks why` does", async () => {
  expect(await show("queued")).toMatch(/^because +No scheduler is alive: .* \[NO_SCHEDULER\]$/m);
  await server.addJob("scheduler");
  expect(await show("queued")).toMatch(/^because +The run is queued and will be started .* \[RUN_QUEUED\]$/m);
  await server.sql("UPDATE job SET dags = '{another}' WHERE kind = 'scheduler'");
  const unserved = /^because +No live scheduler serves DAG "etl": .* --dags etl \[DAG_UNSERVED\]$/m;
  expect(await show("queued")).toMatch(unserved);
  expect(JSON.parse(await show("queued", "--json")).held_by).toMatchObject([{ code: "DAG_UNSERVED" }]);
  await server.addRun("etl", { runId: "running", state: "running" });
  expect(await show("running")).toMatch(unserved);
  await server.sql("UPDATE job SET dags = NULL WHERE kind = 'scheduler'");
});

it("explains why a queued run has not started instead of listing its tasks", async () => {
  const list = (...more: string[]) =>
    runCaptured(["tasks", "list", "etl", ...more], {
      env: { TRADEWIND_URL: url, TRADEWIND_TOKEN: server.token },
    });
  const { code, stderr, stdout } = await list("queued");
  expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
  expect(stderr).toMatch(
    /^The run queued has not started: its tasks have no state yet\.\n {2}because the run is queued: .* \[MAX_ACTIVE_RUNS\]\n$/,
  );
  expect(await list("queued", "--json")).toMatchObject({ stdout: "[]\n", stderr: "" });
  expect((await list("running", "--state", "failed")).stderr).toBe("No tasks match.\n");
});

it("names the limit of active runs and the pause of its DAG", async () => {
  expect(await show("queued")).toMatch(
    /^because +The run is queued: 1 of at most 1 runs .* \[MAX_ACTIVE_RUNS\]$/m,
  );
  await server.sql("UPDATE dag SET is_paused = true");
  expect(await show("queued")).toMatch(
    /^because +DAG "etl" is paused: its runs do not start.* \[DAG_PAUSED\]$/m,
  );
  await server.sql("UPDATE dag SET is_paused = false");
});

it("gives no reason for a run that is running or has ended", async () => {
  await server.addRun("etl", { runId: "ended", state: "success" });
  for (const run of ["running", "ended"]) expect(await show(run)).not.toContain("because");
});
