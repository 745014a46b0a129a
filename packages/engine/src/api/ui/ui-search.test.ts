/** The search of the command palette. */
import { beforeAll, describe, expect, it } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";

let tw: Installation;

beforeAll(async () => {
  tw = await Installation.open();
  const add = (dagId: string, ...tasks: string[]) =>
    tw.addDag(
      manifestOf(
        dagId,
        tasks.map((taskId) => ({ taskId })),
      ),
    );
  await add("sales_daily", "extract.Orders", "extract.refunds", "load");
  await add("sales_weekly", "load", "report");
  await add("load_test", "run_load");
  await add("upload", "a");
  await add("gone", "load");
  await tw.sql("UPDATE dag SET is_stale = true WHERE dag_id = 'gone'");
  await tw.sql("UPDATE dag SET is_paused = true WHERE dag_id = 'upload'");
  const due = new Date("2026-11-16T02:00:00Z");
  await tw.addRun("sales_daily", {
    runId: "scheduled__first",
    state: "failed",
    runAfter: due,
    logicalDate: due,
  });
  await tw.addRun("sales_daily", {
    runId: "backload",
    state: "success",
    runAfter: new Date("2026-11-15T02:00:00Z"),
  });
  await tw.sql("INSERT INTO pool (name, slots) VALUES ('loaders', 4), ('@sales/load', 1)");
  await tw.sql("INSERT INTO variable (key, sealed) VALUES ('LOAD_LIMIT', '')");
  await tw.sql("INSERT INTO connection (conn_id, conn_type) VALUES ('warehouse', 'postgres')");
  await tw.sql("INSERT INTO asset (uri) VALUES ('s3://shop/orders')");
});

interface Result {
  readonly kind: string;
  readonly name: string;
  readonly dag_id: string | null;
}

const found = async (q: string): Promise<string[]> => {
  const { results } = (await tw.call("GET", `/ui/search?q=${encodeURIComponent(q)}`)).json();
  return results.map(({ dag_id, kind, name }: Result) =>
    [kind, ...(dag_id === null || dag_id === name ? [] : [dag_id]), name].join(" "),
  );
};

describe("/ui/search", () => {
  it("finds everything by name: equal names, then beginnings, then parts", async () => {
    expect(await found("load")).toEqual([
      "task sales_daily load",
      "task sales_weekly load",
      "dag load_test",
      "pool loaders",
      "variable LOAD_LIMIT",
      "task load_test run_load",
      "dag upload",
      "run sales_daily backload",
    ]);
    expect(await found("WARE")).toEqual(["connection warehouse"]);
    expect(await found("orders")).toEqual(["task sales_daily extract.Orders", "asset s3://shop/orders"]);
  });

  it("finds tasks and runs of a DAG by several words", async () => {
    expect(await found("weekly load")).toEqual(["task sales_weekly load"]);
    expect(await found("sales extract")).toEqual([
      ...["task sales_daily extract.Orders", "task sales_daily extract.refunds"],
    ]);
    expect(await found("sales 2026-11-16")).toEqual(["run sales_daily scheduled__first"]);
    expect(await found("scheduled__")).toEqual(["run sales_daily scheduled__first"]);
    expect((await found("sales"))[0]).toBe("dag sales_daily");
  });

  it("shows what the palette needs to open a result", async () => {
    const of = async (q: string) => (await tw.call("GET", `/ui/search?q=${q}`)).json().results[0];
    expect(await of("backload")).toEqual({
      ...{ kind: "run", name: "backload", dag_id: "sales_daily", run_id: "backload", task_id: null },
      ...{ state: "success", is_paused: null },
    });
    expect(await of("upload")).toMatchObject({ kind: "dag", dag_id: "upload", is_paused: true });
    expect(await of("run_load")).toMatchObject({ kind: "task", dag_id: "load_test", task_id: "run_load" });
  });

  it("takes words literally, and finds nothing for none", async () => {
    for (const q of ["", "  ", "%", '"', '", "', "\\", "load nothing", "'; DROP TABLE dag"])
      expect(await found(q)).toEqual([]);
    expect(await found("_test")).toEqual(["dag load_test"]);
  });
});
