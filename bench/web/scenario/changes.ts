/** (f) From a state in the database to the screen, for a run of the real scheduler; (h) the same in 20 tabs. */
import { setTimeout as sleep } from "node:timers/promises";
import { adhoc } from "../../../packages/engine/src/store/database/database.ts";
import type { Page } from "../../../packages/web/test/support/browser.ts";
import type { Figure } from "../../result.ts";
import { digits, median, quantile } from "../../statistics.ts";
import { until } from "../../until.ts";
import { addRuns, Changes } from "../history.ts";
import type { Stage } from "../stage.ts";

export const SLOW_DAG = "slow";
export const TABS_DAG = "tabs";
const TABS = 20;

/** Stores, per task and state, the time at which a row of the table of tasks was painted with it. */
const WATCH = `{
globalThis.seen = {};
void (async () => {
  for (;;) {
    await new Promise(requestAnimationFrame);
    for (const row of document.querySelectorAll("main tbody tr")) {
      const task = row.querySelector("a")?.textContent;
      const state = /Running|Success/.exec(row.textContent)?.[0].toLowerCase();
      if (task && state) globalThis.seen[task + " " + state] ??= Date.now();
    }
  }
})();
}`;

interface TaskTimes {
  readonly task_id: string;
  readonly running: number;
  readonly success: number;
}

/** By the clock of this machine, which the browser shares. */
const TIMES = adhoc(
  `SELECT t.task_id, 1000 * extract(epoch FROM t.started_at)::float8 AS running, 1000 * extract(epoch FROM t.ended_at)::float8 AS success
   FROM task_instance t JOIN dag_run r ON r.id = t.dag_run_id WHERE r.dag_id = $1 AND r.run_id = $2 AND t.ended_at IS NOT NULL`,
);
const OPEN = adhoc(
  "SELECT FROM dag_run WHERE dag_id = $1 AND run_id = $2 AND state IN ('queued', 'running')",
);

export async function stateToScreen(stage: Stage): Promise<Figure[]> {
  await stage.post(`/api/v2/dags/${SLOW_DAG}/dagRuns`, { dag_run_id: "live" });
  const seen = await stage.visit(`/dags/${SLOW_DAG}/runs/live?tab=tasks`, async (page) => {
    await page.evaluate(WATCH);
    await until(
      "the run has ended",
      async () => (await stage.database.rows(OPEN, [SLOW_DAG, "live"])).length === 0,
    );
    await sleep(2_000);
    return page.evaluate<Record<string, number>>("globalThis.seen");
  });
  const tasks = await stage.database.rows<TaskTimes>(TIMES, [SLOW_DAG, "live"]);
  // The page opens while the first one runs.
  const changes = tasks
    .filter(({ task_id }) => task_id !== "t0")
    .flatMap(({ running, success, task_id }) => [
      { name: `${task_id} running`, at: running },
      { name: `${task_id} success`, at: success },
    ]);
  const times = changes.flatMap(({ at, name }) => (seen[name] === undefined ? [] : [seen[name] - at]));
  return [
    {
      scenario: "f",
      what: "state change of a real run to the screen, p95",
      value: quantile(times, 0.95),
      unit: "ms",
      bar: { atMost: 500 },
      note: `p50 ${digits(median(times))} ms; ${times.length} of ${changes.length} states were seen`,
    },
  ];
}

export async function manyTabs(stage: Stage): Promise<Figure[]> {
  await addRuns(stage.database, TABS_DAG, { runs: 1, running: 1 });
  const profile = await stage.profile();
  const changes = new Changes(stage.database);
  try {
    const pages: Page[] = [];
    let last = 0;
    for (let n = 0; n < TABS; n++) {
      const page = await profile.newPage();
      const started = performance.now();
      await page.goto(`/dags/${TABS_DAG}/runs/r1?tab=tasks`);
      await page.locator("main tbody tr").first().waitFor();
      last = performance.now() - started;
      pages.push(page);
    }
    await sleep(1_000);
    const moved = performance.now();
    await changes.move({ dagId: TABS_DAG, runId: "r1", state: "running", from: 0, count: 500 });
    const arrived = await Promise.all(
      pages.map(async (page) => {
        await page.locator("main tbody").getByText("Running", { exact: true }).first().waitFor();
        return performance.now() - moved;
      }),
    );
    return [
      {
        scenario: "h",
        what: `${TABS} tabs: the last one opens`,
        value: last,
        unit: "ms",
        bar: { atMost: 2_000 },
      },
      {
        scenario: "h",
        what: `${TABS} tabs: show a change within 5 s`,
        value: arrived.filter((ms) => ms < 5_000).length,
        unit: "tabs",
        bar: { atLeast: TABS },
        note: `the first after ${digits(Math.min(...arrived))} ms, the last after ${digits(Math.max(...arrived))} ms; all are visible, and each reads 500 rows`,
      },
    ];
  } finally {
    await changes.close();
    await profile.close();
  }
}
