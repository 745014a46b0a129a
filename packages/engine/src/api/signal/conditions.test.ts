import { beforeAll, describe, expect, test } from "vitest";
import { drive, drivenManifest, STARTED_AT } from "../../../test/api/driven.ts";
import { Installation, manifestOf } from "../../../test/api/installation.ts";

let tw: Installation;

beforeAll(async () => {
  tw = await Installation.open();
  await tw.addDag(drivenManifest("online"));
  await tw.addDag(drivenManifest("other"));
  await tw.addDag(manifestOf("etl", [{ taskId: "a" }, { taskId: "b", upstream: ["a"] }]));
});

const running = (dagId: string, runId: string) => tw.addRun(dagId, { runId, startedAt: STARTED_AT });
const conditionsOf = async (dagId: string, runId: string) =>
  (await tw.call("GET", `/dags/${dagId}/dagRuns/${runId}/conditions`)).json();

describe("conditions of a run", () => {
  test("show received and missing signals of each rule, and pending commands", async () => {
    await drive(tw, await running("online", "half"), (each, tell) => {
      tell("a");
      tell("mode", "closed");
      tell("c");
      each.addStart("train");
      each.addStart("train");
      each.setStopping("serve", "site.closed");
    });
    const shown = await conditionsOf("online", "half");
    expect(shown).toMatchObject({
      ...{ dag_id: "online", dag_run_id: "half", run_state: "running", is_driven: true, closed: null },
      next_tick: "2026-01-01T11:00:00.000Z",
    });
    expect(shown.rules).toEqual([
      {
        ...{ task_id: "train", rule_index: 0, action: "start", once: false, is_armed: true, fired: 0 },
        ...{ condition: "all(a, b)", missing: "b" },
        parts: [
          { text: "a", is_met: true, version: 1 },
          { text: "b", is_met: false, version: null },
        ],
      },
      {
        ...{ task_id: "train", rule_index: 1, action: "stop", once: true, is_armed: false, fired: 1 },
        ...{ condition: "c", missing: "c", parts: [{ text: "c", is_met: false, version: null }] },
      },
      {
        ...{ task_id: "serve", rule_index: 0, action: "restart", once: false, is_armed: true, fired: 0 },
        ...{ condition: 'mode = "open"', missing: 'mode = "open" (current value: "closed")' },
        parts: [{ text: 'mode = "open"', is_met: false, version: 2, latest: "closed" }],
      },
      {
        ...{ task_id: null, rule_index: 0, action: "stop", once: true, is_armed: true, fired: 0 },
        ...{
          condition: "closed",
          missing: "closed",
          parts: [{ text: "closed", is_met: false, version: null }],
        },
      },
    ]);
    const nothing = {
      needs_start: false,
      is_streaming: false,
      pending_starts: 0,
      stopping: null,
      next_tick: null,
      reacts_to: [],
      on_signal_failure: null,
    };
    expect(shown.tasks).toEqual([
      { ...nothing, task_id: "train", needs_start: true, pending_starts: 2 },
      { ...nothing, task_id: "serve", is_streaming: true, stopping: "site.closed" },
      { ...nothing, task_id: "report", needs_start: true, next_tick: "2026-01-01T11:00:00.000Z" },
      { ...nothing, task_id: "ask", needs_start: true, reacts_to: ["ask.*"] },
    ]);
  });

  test("show a failing onSignal, its signal and the next attempt", async () => {
    const againAt = STARTED_AT.getTime() + 4_000;
    await drive(tw, await running("online", "failing"), (each) =>
      each.setFailedOnSignal("ask", { key: "ask.it", version: 12, attempts: 3, error: "no idea", againAt }),
    );
    const { tasks } = await conditionsOf("online", "failing");
    expect(tasks.find(({ task_id }: { task_id: string }) => task_id === "ask").on_signal_failure).toEqual({
      ...{ key: "ask.it", version: 12, attempts: 3, error: "no idea" },
      again_at: "2026-01-01T10:00:04.000Z",
    });
  });

  test("show the cause of the close for an ended run, without counts", async () => {
    await tw.addRun("online", { runId: "gone", state: "success", startedAt: STARTED_AT });
    const tell = `INSERT INTO signal (namespace, key, value, sender) VALUES ('run', 'online/gone', $1, 'engine')`;
    await tw.sql(tell, ['{"state":"running"}']);
    expect(await conditionsOf("online", "gone")).toMatchObject({ closed: "its end" });
    await tw.sql(tell, ['{"state":"success","closedBy":"site.closed"}']);
    const gone = await conditionsOf("online", "gone");
    expect(gone).toMatchObject({ run_state: "success", closed: "site.closed" });
    expect(gone.rules.map((rule: { fired: number | null }) => rule.fired)).toEqual(Array(4).fill(null));
  });

  test("are empty for a queued run, and disarmed for a closed or ended run", async () => {
    await tw.addRun("online", { runId: "queued", state: "queued" });
    const queued = await conditionsOf("online", "queued");
    expect(queued).toMatchObject({ is_driven: true, closed: null, next_tick: null });
    expect(queued.rules[0]).toMatchObject({ missing: "a and b", is_armed: true, fired: 0 });
    expect(queued.tasks[2]).toMatchObject({ task_id: "report", next_tick: null });
    await drive(tw, await running("online", "closed"), (each) => each.close("ada"));
    const closed = await conditionsOf("online", "closed");
    expect(closed).toMatchObject({ closed: "ada", next_tick: null });
    expect(closed.rules.map((rule: { is_armed: boolean }) => rule.is_armed)).toEqual(Array(4).fill(false));
    await tw.addRun("online", { runId: "ended", state: "failed", startedAt: STARTED_AT });
    const ended = await conditionsOf("online", "ended");
    expect(ended).toMatchObject({ run_state: "failed", closed: "its end", next_tick: null });
    expect(ended.rules[0]).toMatchObject({ is_armed: false });
  });

  test("are empty for a run that is not signal-driven, until a manual command", async () => {
    await running("etl", "plain");
    expect(await conditionsOf("etl", "plain")).toMatchObject({ is_driven: false, rules: [], tasks: [] });
    await tw.call("POST", "/dags/etl/dagRuns/plain/taskInstances/a/start");
    expect(await conditionsOf("etl", "plain")).toMatchObject({ is_driven: true, rules: [], tasks: [] });
    expect((await tw.call("GET", "/dags/etl/dagRuns/none/conditions")).statusCode).toBe(404);
  });
});

test("lists the conditions of all running signal-driven runs, page by page", async () => {
  await tw.sql("DELETE FROM run_drive");
  for (let n = 0; n < 5; n++) await drive(tw, await running("online", `page-${n}`), (_, tell) => tell("a"));
  await drive(tw, await running("other", "elsewhere"), () => {});
  await drive(tw, await tw.addRun("other", { runId: "over", state: "success" }), () => {});
  const read = async (query: string) => (await tw.call("GET", `/signals/conditions${query}`)).json();
  const names = ({ runs }: { runs: { dag_run_id: string }[] }) => runs.map((run) => run.dag_run_id);
  const all = await read("?order_by=dag_run_id");
  expect([names(all), all.total_entries]).toEqual([
    ["elsewhere", "page-0", "page-1", "page-2", "page-3", "page-4"],
    6,
  ]);
  expect(all.runs[1].rules[0]).toMatchObject({ missing: "b" });
  expect(names(await read("?dag_id=other"))).toEqual(["elsewhere"]);
  expect(names(await read("?dag_id=online&order_by=-dag_run_id&limit=2&offset=1"))).toEqual([
    "page-3",
    "page-2",
  ]);
  const first = await read("?order_by=dag_run_id&limit=4&cursor=");
  const second = await read(`?order_by=dag_run_id&limit=4&cursor=${first.next_cursor}`);
  expect([...names(first), ...names(second)]).toEqual(names(all));
});
