/** The table of DAGs of the web UI: search, filters by state, run bars. */
import { beforeAll, expect, it } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";

let tw: Installation;

const NOW = Date.now();
const at = (minutes: number) => new Date(NOW - minutes * 60_000);
const daily = { kind: "cron", expression: "0 2 * * *", timezone: "Europe/Berlin", style: "trigger" } as const;

beforeAll(async () => {
  tw = await Installation.open();
  const dag = (dagId: string, facts: Parameters<typeof manifestOf>[2] = {}) =>
    tw.addDag(manifestOf(dagId, [{ taskId: "a" }, { taskId: "b" }], { description: null, ...facts }));
  await dag("sales_daily", {
    owner: "Finance",
    tags: ["core", "eur"],
    schedule: daily,
    description: "Orders of a day",
  });
  await dag("broken", { owner: "ml", tags: ["core"] });
  await dag("recovered");
  await dag("overdue", { schedule: daily });
  await dag("stuck");
  await dag("missing_deadline");
  await dag("idle", { tags: ["100%_sure"] });
  await dag("gone");
  await tw.sql("UPDATE dag SET is_stale = true WHERE dag_id = 'gone'");
  await tw.sql("UPDATE dag SET is_paused = true WHERE dag_id = 'idle'");
  await tw.sql(
    "UPDATE dag SET next_run_after = now() - interval '5 minutes', next_logical_date = now() WHERE dag_id = 'overdue'",
  );
  await tw.sql("INSERT INTO import_error (file, message) VALUES ('idle.ts', $1)", ["No export\nline 7"]);

  for (let run = 0; run < 35; run++)
    await tw.addRun("sales_daily", {
      runId: `day-${run}`,
      state: run === 20 ? "failed" : "success",
      ...{
        runAfter: at(1000 - run),
        logicalDate: at(1000 - run),
        startedAt: at(1000 - run),
        endedAt: at(999 - run),
      },
    });
  const ended = (runId: string, state: string, minutes: number) => ({
    runId,
    state,
    runAfter: at(minutes),
    startedAt: at(minutes),
    endedAt: at(minutes - 1),
  });
  await tw.addRun("broken", ended("good", "success", 60));
  const bad = await tw.addRun("broken", ended("bad", "failed", 50));
  await tw.addInstance(bad, "a", { state: "success", endedAt: at(50) });
  await tw.addInstance(bad, "b", { state: "failed", endedAt: at(49) });
  await tw.sql(
    "UPDATE task_instance SET reason = 'LedgerMismatch: 14 entries' WHERE dag_run_id = $1 AND task_id = 'b'",
    [bad],
  );
  // The next one is not decided yet: the DAG still fails.
  await tw.addRun("broken", { runId: "again", state: "running", runAfter: at(1), startedAt: at(1) });
  await tw.addRun("recovered", ended("bad", "failed", 50));
  await tw.addRun("recovered", ended("good", "success", 40));
  await tw.addRun("stuck", { runId: "queued", state: "queued", runAfter: at(17) });
  const missed = await tw.addRun("missing_deadline", {
    runId: "slow",
    state: "running",
    runAfter: at(3),
    startedAt: at(3),
  });
  await tw.sql(
    `INSERT INTO deadline (dag_run_id, task_id, ordinal, counts_from, actions, due_at, clear_number, state)
     VALUES ($1, '', 0, 'start', '[]', now() - interval '2 minutes', 0, 'missed')`,
    [missed],
  );
});

async function table(query = "") {
  const response = await tw.call("GET", `/ui/dags${query}`);
  return response.json();
}
const idsOf = (answer: { dags: { dag_id: string }[] }) => answer.dags.map(({ dag_id }) => dag_id);

it("searches ids, owners, tags and descriptions, in any case", async () => {
  for (const [q, found] of [
    ["SALES", ["sales_daily"]],
    ["finance", ["sales_daily"]],
    ["core ml", ["broken"]],
    ["orders day", ["sales_daily"]],
    ["100%_", ["idle"]],
    ["%", ["idle"]],
    ["nothing like this", []],
  ] as const)
    expect([q, idsOf(await table(`?q=${encodeURIComponent(q)}`))]).toEqual([q, found]);
});

it("filters by tag, owner, pause and state", async () => {
  expect(idsOf(await table("?tag=core"))).toEqual(["broken", "sales_daily"]);
  expect(idsOf(await table("?tag=core&tag=eur"))).toEqual(["sales_daily"]);
  expect(idsOf(await table("?owner=ml"))).toEqual(["broken"]);
  expect(idsOf(await table("?paused=true"))).toEqual(["idle"]);
  expect(idsOf(await table("?state=failing"))).toEqual(["broken"]);
  expect(idsOf(await table("?state=late"))).toEqual(["missing_deadline", "overdue", "stuck"]);
  expect(idsOf(await table("?state=running"))).toEqual(["broken", "missing_deadline"]);
  expect(idsOf(await table("?state=never_run"))).toEqual(["idle", "overdue"]);
  expect(idsOf(await table("?state=import_error"))).toEqual(["idle"]);
});

it("shows the latest 30 runs as columns, the oldest first", async () => {
  const { dags, run_states: legend } = await table("?q=sales");
  const { bars } = dags[0];
  expect(bars.run_ids).toEqual(Array.from({ length: 30 }, (_, index) => `day-${index + 5}`));
  const states = [...Buffer.from(bars.states, "base64")].map((byte) => legend[byte]);
  expect(states).toEqual(bars.run_ids.map((runId: string) => (runId === "day-20" ? "failed" : "success")));
  expect(bars.ended[0] - bars.started[0]).toBe(60_000);
  expect(bars.logical_dates).toEqual(bars.run_after);
});

it("shows the schedule in words, the failed task, and why a DAG is late", async () => {
  const [broken] = (await table("?q=broken")).dags;
  expect(broken).toMatchObject({
    ...{ owner: "ml", tags: ["core"], task_count: 2, running_runs: 1, queued_runs: 0, late: null },
    failing: { run_id: "bad" },
    last_failure: { run_id: "bad" },
    last_run: { run_id: "again", tasks: 0, finished: 0 },
  });
  const [sales] = (await table("?q=sales")).dags;
  expect(sales).toMatchObject({
    schedule: {
      summary: "0 2 * * *",
      text: "At 02:00, every day, Europe/Berlin",
      zone: "Europe/Berlin",
      is_periodic: true,
    },
    failing: null,
    last_failure: { run_id: "day-20" },
  });
  const late = (await table("?state=late")).dags.map(
    (dag: { late: { because: string; run_id: string } }) => dag.late,
  );
  expect(late).toMatchObject([
    { because: "deadline", run_id: "slow" },
    { because: "not_created", run_id: null },
    { because: "not_started", run_id: "queued" },
  ]);
  expect((await table("?q=idle")).dags[0]).toMatchObject({
    import_error: "No export",
    is_paused: true,
    last_run: null,
    bars: { run_ids: [], states: "" },
  });
});

it("pages by cursor, with problems first if asked", async () => {
  const first = await table("?limit=3&order_by=problems");
  expect(idsOf(first)).toEqual(["broken", "idle", "missing_deadline"]);
  expect(first.total).toEqual({ count: 7, more: false });
  const second = await table(`?limit=3&order_by=problems&cursor=${first.next_cursor}`);
  expect(idsOf(second)).toEqual(["overdue", "stuck", "recovered"]);
  const last = await table(`?limit=3&order_by=problems&cursor=${second.next_cursor}`);
  expect(idsOf(last)).toEqual(["sales_daily"]);
  expect(last.next_cursor).toBeNull();
  expect(idsOf(await table(`?limit=3&order_by=problems&cursor=${last.previous_cursor}`))).toEqual(
    idsOf(second),
  );
  expect(idsOf(await table("?order_by=-last_run&limit=2"))).toEqual(["broken", "missing_deadline"]);
});

it("counts what each further filter would show", async () => {
  expect(await (await tw.call("GET", "/ui/dags/facets")).json()).toEqual({
    ...{ total: 7, paused: 1, running: 2, never_run: 2, import_error: 1, failing: 1, late: 3 },
    tags: [
      { name: "core", count: 2 },
      { name: "100%_sure", count: 1 },
      { name: "eur", count: 1 },
    ],
    owners: expect.arrayContaining([
      { name: "Finance", count: 1 },
      { name: "ml", count: 1 },
    ]),
  });
  const core = await (await tw.call("GET", "/ui/dags/facets?q=core")).json();
  expect(core).toMatchObject({ total: 2, failing: 1, late: 0 });
});
