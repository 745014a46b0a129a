/**
 * A plan of these statements is kept by its connection, also if it was made while the tables were empty. Each statement is
 * executed once, on the only connection of its kind, and its plan is then read by its name.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { nodes, type PlanRow, planOf } from "../../../test/support/query-plan.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, call, type Database } from "../database/database.ts";
import { claimAssignments, insertAssignments, readAssignments, readLogKeys } from "./assignments.ts";
import { insertReports, readReports } from "./reports.ts";

const ID = "'{00000000-0000-4000-8000-000000000000}'";

/** Each finds few rows: those of a worker are no more than its slots. */
const INDEXES: ReadonlySet<string | undefined> = new Set([
  "assignment_pkey",
  "assignment_worker",
  "callback_pkey",
  "dag_run_pkey",
  "job_pkey",
  "job_running",
  "report_assignment_id_type_key",
  "task_instance_pkey",
]);

describe("statements about assignments, planned on empty tables", () => {
  let db: Database;

  beforeAll(async () => {
    ({ db } = await testDatabase({ max: 1, maxPipelines: 1 }));
    await insertAssignments(db, []);
    await claimAssignments(db, 1, []);
    await readAssignments(db, 1, []);
    await readLogKeys(db, 1, []);
    await insertReports(db, []);
    await readReports(db, 1, []);
  });

  it.each([
    [
      "assignment-insert",
      `(${ID}, '{attempt}', '{1}', '{t}', '{-1}', '{queue}', '{default}', '{1}', NULL, NULL)`,
    ],
    ["assignment-claim", `(1, ${ID})`],
    ["assignment-read", `(1, ${ID})`],
    ["assignment-log-keys", `(1, ${ID})`],
    ["report-insert", `(${ID}, '{1}', '{ended}', '{null}', '{1}')`],
    ["report-read", "(1, '{}', 2000)"],
  ])("%s finds its rows by key", async (name, values) => {
    const [rows] = await db.pipeline([call(adhoc(`EXPLAIN (FORMAT JSON) EXECUTE "${name}"${values}`))]);
    const reads = nodes(planOf(rows as PlanRow[])).filter((node) => node["Node Type"].includes("Scan"));
    // All reports that are not applied yet are few.
    const others = reads.filter(
      ({ "Index Cond": cond, "Index Name": index, "Relation Name": table }) =>
        table !== undefined && index !== "report_pkey" && (!INDEXES.has(index) || cond === undefined),
    );
    expect(reads.length).toBeGreaterThan(0);
    expect(others).toEqual([]);
  });
});
