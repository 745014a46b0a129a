/** Output about schedules and automatically paused DAGs, against a real server. */
import { beforeAll, describe, expect, it } from "vitest";
import { type Installation, manifestOf } from "../../engine/test/api/installation.ts";
import { type ServedInstallation, servedInstallation } from "./support/served-installation.ts";

let server: Installation;
let tw: ServedInstallation["tw"];

const dates = ["2027-01-01T00:00:00.000Z", "2027-02-01T00:00:00.000Z"];

beforeAll(async () => {
  ({ server, tw } = await servedInstallation());
  const tasks = [{ taskId: "a" }];
  await server.addDag(
    manifestOf("closings", tasks, {
      schedule: { kind: "dates", dates },
      jitterMs: 90_000,
      pauseAfterFailures: 3,
      runRetry: { retries: 2, delayMs: 600_000, from: "start" },
      groups: [{ groupId: "g", parent: null, docs: null, retry: { retries: 3, delayMs: 5_000 } }],
    }),
  );
  await server.addDag(
    manifestOf("own", tasks, { schedule: { kind: "timetable", name: "WorkingDays", args: null } }),
  );
  await server.addDag(manifestOf("unlucky", tasks));
  const error = { code: "NO_CALENDAR", message: "no calendar for 2027", at: "2026-01-01T00:00:00.000Z" };
  await server.sql(
    `INSERT INTO dag_timetable (dag_id, failures, ask_at, error)
     VALUES ('own', 3, now() + interval '1 hour', '${JSON.stringify(error)}')`,
  );
  await server.sql(
    "UPDATE dag SET is_paused = true, pause_reason = 'the last 3 scheduled runs have failed' WHERE dag_id = 'unlucky'",
  );
});

describe("dags list", () => {
  it("marks a DAG with a failing schedule, and shows the kind of each schedule", async () => {
    const { code, stdout } = await tw("dags", "list");
    expect(code).toBe(0);
    expect(stdout).toMatch(/closings +active +2 dates/);
    expect(stdout).toMatch(/own +schedule error +WorkingDays/);
    expect(stdout).toMatch(/unlucky +paused/);
  });

  it("prints all of it as JSON", async () => {
    const listed = JSON.parse((await tw("dags", "list", "--json")).stdout);
    const facts = listed.map((dag: Record<string, { code?: string } | string | null>) => [
      dag.dag_id,
      (dag.schedule_error as { code?: string } | null)?.code ?? null,
      dag.pause_reason,
    ]);
    expect(facts).toEqual([
      ["closings", null, null],
      ["own", "NO_CALENDAR", null],
      ["unlucky", null, "the last 3 scheduled runs have failed"],
    ]);
  });
});

describe("dags show", () => {
  it("shows the error of a timetable, the number of failures and the next attempt", async () => {
    const { stdout } = await tw("dags", "show", "own");
    expect(stdout).toMatch(/schedule error +no calendar for 2027 \[NO_CALENDAR\] \(3 in a row; next try in /);
    expect(stdout).not.toContain("paused because");
  });

  it("shows the jitter and the automatic pause", async () => {
    const { stdout } = await tw("dags", "show", "closings");
    expect(stdout).toMatch(/jitter +up to 90s/);
    expect(stdout).toMatch(/pauses +after 3 failed scheduled runs in a row/);
    const own = (await tw("dags", "show", "own")).stdout;
    expect(own).not.toMatch(/^(jitter|pauses|run retries|group retries)/m);
  });

  it("shows the retries of runs and groups", async () => {
    const { stdout } = await tw("dags", "show", "closings");
    expect(stdout).toMatch(/run retries +2, 10 m apart, from the start/);
    expect(stdout).toMatch(/group retries +g: 3, 5\.0 s apart/);
  });

  it("shows why a DAG was paused automatically", async () => {
    const { stdout } = await tw("dags", "show", "unlucky");
    expect(stdout).toMatch(/paused because +the last 3 scheduled runs have failed/);
    await tw("dags", "unpause", "unlucky");
    expect((await tw("dags", "show", "unlucky")).stdout).not.toContain("paused because");
  });
});
