/** First failures and dependsOnPast, against a real server with rows written by the test. */
import { beforeAll, expect, it } from "vitest";
import { type Installation, manifestOf } from "../../engine/test/api/installation.ts";
import { type ServedInstallation, servedInstallation } from "./support/served-installation.ts";

let server: Installation;
let tw: ServedInstallation["tw"];
let on80Columns: ServedInstallation["on80Columns"];
const day = (date: number) => new Date(Date.UTC(2026, 0, date));

beforeAll(async () => {
  ({ on80Columns, server, tw } = await servedInstallation());
  await server.addJob("scheduler");
  await server.addDag(
    manifestOf("etl", [
      { taskId: "zero" },
      { taskId: "extract", upstream: ["zero"] },
      { taskId: "clean", upstream: ["extract"] },
      { taskId: "append", upstream: ["clean"], dependsOnPast: true, pool: "warehouse" },
    ]),
  );
  const failed = await server.addRun("etl", { runId: "day 1", state: "failed", logicalDate: day(1) });
  for (const [taskId, state] of [
    ["zero", "success"],
    ["extract", "failed"],
    ["clean", "upstream_failed"],
    ["append", "upstream_failed"],
  ] as const)
    await server.addInstance(failed, taskId, { state, tryNumber: state === "upstream_failed" ? 0 : 1 });
  await server.sql("UPDATE task_instance SET reason = 'Error: the disk is full' WHERE state = 'failed'");
  for (const date of [2, 3, 4]) {
    const waiting = await server.addRun("etl", { runId: `day ${date}`, logicalDate: day(date) });
    for (const taskId of ["zero", "extract", "clean"])
      await server.addInstance(waiting, taskId, { state: "success", tryNumber: 1 });
    await server.addInstance(waiting, "append");
  }
});

it("lists tasks in topological order with the task that failed first", async () => {
  const { stdout } = await tw("tasks", "list", "etl", "day 1");
  const rows = stdout.trimEnd().split("\n").slice(1);
  expect(rows.map((row) => row.split(/ +/, 2).join(" "))).toEqual([
    "zero success",
    "extract failed",
    "clean upstream_failed",
    "append upstream_failed",
  ]);
  expect(rows[1]).toContain("the disk is full");
  expect(rows.slice(2)).toEqual([
    expect.stringContaining("extract failed"),
    expect.stringContaining("extract failed"),
  ]);
  const json = JSON.parse((await tw("tasks", "list", "etl", "day 1", "--json")).stdout) as object[];
  expect(json[3]).toMatchObject({ task_id: "append", failed_upstream: { task_id: "extract" } });
});

it("lists the tasks of a DAG in topological order without a run", async () => {
  const { stdout } = await tw("tasks", "list", "etl");
  expect(stdout).toMatch(/^TASK +OPERATOR +RETRIES +AFTER/);
  expect(stdout).toMatch(/^zero .* allSuccess /m);
  expect(stdout).toMatch(
    /\nzero .* - [^\n]*\nextract .* zero [^\n]*\nclean .* extract [^\n]*\nappend .* clean .* warehouse\n$/,
  );
  expect((await tw("tasks", "list", "etl", "--limit", "2")).stderr).toContain("2 of 4 shown");
  const wrong = await tw("tasks", "list", "etl", "--state", "failed");
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toContain("--state needs a run");
});

it("names the first failure of a chain and the command for its log in `tasks why`", async () => {
  const { stderr, stdout } = await tw("tasks", "why", "etl", "day 1", "append");
  expect(stdout).toContain("because extract is failed\n");
  expect(stderr).toBe("extract failed first. Its log: `tradewind tasks logs etl day 1 extract`\n");
});

it("follows dependsOnPast over several runs in `tasks why`", async () => {
  const { stdout } = await tw("tasks", "why", "etl", "day 4", "append");
  expect(stdout).toBe(`append is pending
  because it depends on its own success in run "day 3", which in turn waits for the run before it. The first of 3 such runs is "day 1": append is upstream_failed [DEPENDS_ON_PAST]
    because append of run day 1 is upstream_failed
      because clean of run day 1 is upstream_failed
        because extract of run day 1 is failed
          because try 1 failed: Error: the disk is full
`);
});

it("wraps the sentences of `tasks why` on a terminal", async () => {
  const { stderr, stdout } = await on80Columns("tasks", "why", "etl", "day 4", "append");
  expect(stdout.split("\n").slice(0, 5)).toEqual([
    "append is pending",
    '  because it depends on its own success in run "day 3", which in turn waits for',
    '      the run before it. The first of 3 such runs is "day 1": append is',
    "      upstream_failed [DEPENDS_ON_PAST]",
    "    because append of run day 1 is upstream_failed",
  ]);
  expect(stderr).toBe("");
});

it("lists runs by the due time that it shows", async () => {
  const hour = 3_600_000;
  await server.addDag(manifestOf("late_reports", [{ taskId: "a" }]));
  // The run that was due first started last.
  for (const [runId, due, started] of [
    ["manual__2027-01-04T17:05:05.495Z_7b7ab9ae", 5, 1],
    ["second", 3, 2],
  ] as const)
    await server.addRun("late_reports", {
      runId,
      runAfter: new Date(Date.now() - due * hour),
      startedAt: new Date(Date.now() - started * hour),
    });
  const lines = async (list: ServedInstallation["tw"]) =>
    (await list("runs", "list", "late_reports")).stdout.trimEnd().split("\n");
  const narrow = await lines(on80Columns);
  expect(narrow.map((line) => line.replaceAll(/ +/g, " "))).toEqual([
    "DAG RUN STATE DUE TOOK",
    "late_reports second running 3 h ago -",
    "late_reports manual__2027-01-04T17:05:05.495Z_7b7ab9ae running 5 h ago -",
  ]);
  for (const line of narrow) expect(line.length).toBeLessThanOrEqual(80);
  expect((await lines(tw))[0]).toMatch(/ DUE +TOOK +STARTED +TYPE +LOGICAL DATE$/);
});

it("rejects an image of a DAG that is too large, with the remedy", async () => {
  const tasks = Array.from({ length: 501 }, (_, index) => ({ taskId: `t${index}` }));
  await server.addDag(manifestOf("large", tasks));
  const { code, stderr } = await tw("dags", "graph", "large", "-o", "svg");
  expect(code).toBe(1);
  expect(stderr).toContain("[TW_CLI_GRAPH_TOO_LARGE]\n  → use Graphviz: `tradewind dags graph large -o dot");
  expect((await tw("dags", "graph", "large", "-o", "dot")).stdout).toContain('"t500"');
});
