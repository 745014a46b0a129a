/** (i) Every page with 10 million task instances in the database: its slowest answer. */
import { setTimeout as sleep } from "node:timers/promises";
import { adhoc, type Database } from "../../../packages/engine/src/store/database/database.ts";
import type { BrowserContext } from "../../../packages/web/test/support/browser.ts";
import type { Figure } from "../../result.ts";
import { digits } from "../../statistics.ts";
import type { SuiteOptions } from "../../suite.ts";
import { layeredFile } from "../dags.ts";
import { addRuns } from "../history.ts";
import { pagesOf } from "../pages.ts";
import { Stage } from "../stage.ts";

const DAGS = 20;
const TASKS = 10;
/** While a page loads. */
const LOAD_MS = 1_000;

const FILES = Object.fromEntries(
  Array.from({ length: DAGS }, (_, n) => [`old${n}.ts`, layeredFile(`old${n}`, TASKS)]),
);

export async function tenMillion({ quick }: SuiteOptions, say: (text: string) => void): Promise<Figure[]> {
  const instances = quick ? 200_000 : 10_000_000;
  const stage = await Stage.open({ ...FILES, "pages.ts": layeredFile("pages", 100) });
  try {
    const started = performance.now();
    await addHistory(stage.database, instances / TASKS);
    await addRuns(stage.database, "pages", { runs: 100, running: 1 });
    say(`  ${digits(instances)} task instances made in ${digits((performance.now() - started) / 1_000)} s`);
    const paths = [
      ...pagesOf("pages", "r100"),
      "/dags/old7",
      "/dags/old7?tab=runs",
      "/runs?dag=old7",
      "/runs?dag=pages",
      "/runs?dag=no-such-dag",
      "/runs?state=failed",
    ];
    const profile = await stage.profile();
    const figures: Figure[] = [];
    for (const path of paths)
      figures.push(await slowestAnswer(profile, { path, instances, visits: quick ? 1 : 3 }));
    return figures;
  } finally {
    await stage.close();
  }
}

async function slowestAnswer(
  profile: BrowserContext,
  { instances, path, visits }: { readonly path: string; readonly instances: number; readonly visits: number },
): Promise<Figure> {
  let slowest = { ms: 0, route: "" };
  for (let n = 0; n < visits; n++) {
    const page = await profile.newPage();
    page.on("requestfinished", (request) => {
      const { pathname } = new URL(request.url());
      const { requestStart, responseStart } = request.timing();
      const ms = responseStart - requestStart;
      if (/^\/(?:ui|api)\//.test(pathname) && !pathname.endsWith("/stream") && ms > slowest.ms)
        slowest = { ms, route: pathname };
    });
    await page.goto(path);
    await sleep(LOAD_MS);
    await page.close();
  }
  return {
    scenario: "i",
    what: `${digits(instances)} task instances: slowest answer of ${path}`,
    value: slowest.ms,
    unit: "ms",
    bar: { atMost: path === "/runs" ? 150 : 300 },
    note: slowest.route,
  };
}

/** Runs of 20 DAGs, one per minute and DAG. Their rows are valid: foreign keys need not be checked one by one. */
async function addHistory(database: Database, runs: number): Promise<void> {
  await database.transaction(async (tx) => {
    await tx.script(`
      SET LOCAL session_replication_role = replica;
      INSERT INTO dag_run (dag_id, run_id, run_type, state, logical_date, run_after, version_id, triggered_by, started_at, ended_at)
      SELECT d.dag_id, 'scheduled__' || n, 'scheduled', CASE WHEN n % 50 = 0 THEN 'failed' ELSE 'success' END,
        at, at, d.version_id, 'timetable', at, at + interval '50 seconds'
      FROM generate_series(1, ${runs / DAGS}) AS n CROSS JOIN dag d
      CROSS JOIN LATERAL (SELECT now() - (${runs / DAGS} - n + 1) * interval '1 minute' AS at) AS t
      WHERE d.dag_id LIKE 'old%';

      INSERT INTO task_instance (dag_run_id, task_id, state, try_number, attempt, scheduled_at, queued_at, started_at, ended_at,
        pool, pool_slots, queue, priority_weight, operator)
      SELECT r.id, 'step_' || n || '_of_the_pipeline', CASE WHEN r.state = 'failed' AND n = 9 THEN 'failed' ELSE 'success' END,
        1, gen_random_uuid(), r.started_at, r.started_at, r.started_at, r.ended_at, 'default_pool', 1, 'default', 1, 'task'
      FROM (SELECT * FROM dag_run WHERE dag_id LIKE 'old%' ORDER BY id) r CROSS JOIN generate_series(0, ${TASKS - 1}) AS n;`);
  });
  // Like an installation after a while.
  for (const table of ["dag_run", "task_instance"])
    await database.rows(adhoc(`VACUUM (FREEZE, ANALYZE) ${table}`));
  await database.rows(adhoc("CHECKPOINT"));
}
