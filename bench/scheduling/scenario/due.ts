/**
 * Many DAGs due at once. Runs are created by the real scheduler on the real database; of 10,000 DAGs, 5,000 are due at the
 * same time. Then 1,000 DAGs with real tasks: until all their runs have ended.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { dag } from "@tradewind/sdk";
import { PROGRAM } from "@tradewind/sdk/program";
import { planNext } from "../../../packages/engine/src/model/calendar/planner.ts";
import { publishFiles } from "../../../packages/engine/src/store/dag/dag-publish.ts";
import { adhoc } from "../../../packages/engine/src/store/database/database.ts";
import type { Figure } from "../../result.ts";
import { bundleOf, openBareScheduler, type Rig } from "../../rig.ts";
import { digits } from "../../statistics.ts";
import type { SuiteOptions as Options } from "../../suite.ts";
import { PromptExecutor } from "../prompt-executor.ts";

const MAKE_DUE = adhoc(
  `UPDATE dag SET next_logical_date = now(), next_interval_start = now(), next_interval_end = now(), next_run_after = now()
   WHERE dag_id = ANY($1)`,
);
const MADE = adhoc("SELECT count(*) AS n FROM dag_run WHERE run_type = 'scheduled'");

export async function dueAtOnce(options: Options): Promise<Figure[]> {
  const [all, due] = options.quick ? [1_000, 500] : [10_000, 5_000];
  const bench = await openBareScheduler(new PromptExecutor());
  try {
    for (let first = 0; first < all; first += 500) {
      const manifests = Array.from({ length: 500 }, (_, n) => hourly(`due_${first + n}`));
      const bundle = bundleOf(`export const first = ${first};`);
      const publication = { file: `due_${first}.ts`, bundle, source: "", manifests };
      await publishFiles(bench.database, [publication], { isPausedAtCreation: false, plan: planNext });
    }
    const ids = Array.from({ length: due }, (_, n) => `due_${n * 2}`);
    await bench.database.rows(MAKE_DUE, [ids]);
    const started = performance.now();
    bench.wake("dags");
    let made = 0;
    while (made < due) {
      await sleep(50);
      made = (await bench.database.one<{ n: number }>(MADE))?.n ?? 0;
      if (performance.now() - started > 120_000) throw new Error(`${made} of ${due} runs after two minutes`);
    }
    const ms = performance.now() - started;
    return [
      {
        scenario: "b",
        what: `${all.toLocaleString("en-US")} DAGs, ${due.toLocaleString("en-US")} of them due at once: until their runs are created`,
        value: ms / 1_000,
        unit: "s",
        bar: { atMost: 10 },
        note: `${digits(due / (ms / 1_000))} runs/s`,
      },
    ];
  } finally {
    await bench.stop();
  }
}

/** Each with three tasks in a row, in a separate file: every process loads the code of all of them. */
export async function runsOfManyDags(rig: Rig, options: Options): Promise<Figure[]> {
  const ids = Array.from({ length: options.quick ? 100 : 1_000 }, (_, n) => `many_${n}`);
  const text = (dagId: string) => `import { dag } from "tradewind";

export default dag("${dagId}", {}, (d) => {
  const a = d.task("a", () => 1);
  const b = d.task("b", { inputs: { a } }, ({ a }) => a + 1);
  d.task("c", { inputs: { b } }, ({ b }) => b + 1);
});
`;
  await rig.publish(Object.fromEntries(ids.map((dagId) => [`${dagId}.ts`, text(dagId)])));
  await rig.run(ids);
  const { ms } = await rig.run(ids);
  return [
    {
      scenario: "b",
      what: `${ids.length.toLocaleString("en-US")} DAGs, one run of three tasks each, at once`,
      value: ids.length / (ms / 1_000),
      unit: "runs/s",
      note: `${digits(ms / 1_000)} s; ${digits((ids.length * 3) / (ms / 1_000))} tasks/s`,
    },
  ];
}

function hourly(dagId: string) {
  const built = dag(dagId, { schedule: "0 * * * *" }, (d) => void d.task("only", () => {}));
  return built[PROGRAM].describe();
}
