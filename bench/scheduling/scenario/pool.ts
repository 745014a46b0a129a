/** The cost of a pool: the same ready tasks behind 8 slots and behind 8 processes, in turn. */
import { adhoc } from "../../../packages/engine/src/store/database/database.ts";
import { cpuSum } from "../../process-tree.ts";
import type { Figure } from "../../result.ts";
import type { Rig } from "../../rig.ts";
import { digits, median } from "../../statistics.ts";
import type { SuiteOptions as Options } from "../../suite.ts";

const SLOTS = 8;

export async function pool(rig: Rig, options: Options): Promise<Figure[]> {
  const tasks = options.quick ? 1_000 : 10_000;
  const file = (dagId: string, name: string) => `import { dag } from "tradewind";

export default dag("${dagId}", { maxActiveTasks: 100_000, defaults: { pool: "${name}" } }, (d) => {
  for (let n = 0; n < ${tasks}; n++) d.task(\`t\${n}\`, {}, () => {});
});
`;
  await rig.database.rows(
    adhoc("INSERT INTO pool (name, slots) VALUES ('narrow', $1), ('wide', 100000) ON CONFLICT DO NOTHING"),
    [SLOTS],
  );
  await rig.publish({ "narrow.ts": file("narrow", "narrow"), "wide.ts": file("wide", "wide") });
  for (const dagId of ["wide", "narrow"]) await rig.run([dagId]);
  const times = { narrow: [] as number[], wide: [] as number[] };
  const cpu = { narrow: [] as number[], wide: [] as number[] };
  const ratios: number[] = [];
  // Many pairs: single ones vary from 0.7 to 1.2 x on a machine with shared cores.
  for (let n = 0; n < (options.quick ? 2 : 40); n++) {
    // In turn, and each first every other time: a machine that gets slower or faster affects both.
    const order = n % 2 === 0 ? (["wide", "narrow"] as const) : (["narrow", "wide"] as const);
    for (const dagId of order) {
      const run = await rig.run([dagId]);
      times[dagId].push(run.ms);
      cpu[dagId].push(cpuSum(run.cpu));
    }
    ratios.push((times.narrow.at(-1) ?? 0) / (times.wide.at(-1) ?? 1));
  }
  const rate = (ms: readonly number[]) => digits(tasks / (median(ms) / 1_000));
  const each = (ms: readonly number[]) => digits((1_000 * median(ms)) / tasks);
  return [
    {
      scenario: "d",
      what: `${tasks.toLocaleString("en-US")} ready tasks, 8 processes: time with a pool of 8 slots against one of 100,000`,
      value: median(ratios),
      unit: "x",
      note: `median of ${ratios.length} pairs by turns; ${rate(times.narrow)} against ${rate(times.wide)} tasks/s; CPU ${each(cpu.narrow)} against ${each(cpu.wide)} us/task`,
    },
  ];
}
