/**
 * A task returns in its process, the scheduler in another stores that and sends the next task to a third: from the last
 * line of the code of one task to the first line of the next.
 */
import { adhoc } from "../../../packages/engine/src/store/database/database.ts";
import type { Figure } from "../../result.ts";
import { openRig } from "../../rig.ts";
import { digits, quantile } from "../../statistics.ts";

const TASKS = 50;

const CHAIN = `import { dag } from "tradewind";

const now = () => Number(process.hrtime.bigint()) / 1e6;

export default dag("steps", {}, (d) => {
  let last = d.task("t0", () => ({ n: 0, from: now(), to: now() }));
  for (let n = 1; n < ${TASKS}; n++)
    last = d.task("t" + n, { after: last }, () => {
      const from = now();
      return { n, from, to: now() };
    });
});
`;

const OUTPUTS = adhoc("SELECT value FROM xcom WHERE dag_run_id = $1 AND key = 'return_value'");

export async function stepsBetweenProcesses(options: { readonly quick: boolean }): Promise<Figure[]> {
  const runs = options.quick ? 2 : 20;
  const rig = await openRig();
  try {
    await rig.publish({ "steps.ts": CHAIN });
    const steps: number[] = [];
    for (let run = 0; run < runs + 2; run++) {
      const { ids } = await rig.run(["steps"]);
      const rows = await rig.database.rows<{ value: { n: number; from: number; to: number } }>(OUTPUTS, [
        ids[0],
      ]);
      const tasks = rows.map(({ value }) => value).sort((a, b) => a.n - b.n);
      if (tasks.length !== TASKS) throw new Error(`${tasks.length} of ${TASKS} tasks have an output`);
      // The first runs load the code in every task process.
      if (run >= 2) steps.push(...tasks.slice(1).map(({ from }, at) => from - (tasks[at]?.to ?? Number.NaN)));
    }
    return [
      {
        scenario: "e",
        what: "task finished to next task started, scheduler and tasks in processes of their own: p99",
        value: quantile(steps, 0.99),
        unit: "ms",
        note: `p50 ${digits(quantile(steps, 0.5))}, p90 ${digits(quantile(steps, 0.9))}, longest ${digits(quantile(steps, 1))} ms of ${steps.length}; stored in between`,
      },
    ];
  } finally {
    await rig.stop();
  }
}
