/** What a pool costs: as many ready tasks behind 8 slots as behind 8 processes, by turns. */
import { adhoc } from "../../../packages/engine/src/store/database.ts";
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
  const ratios: number[] = [];
  for (let n = 0; n < (options.quick ? 2 : 10); n++) {
    // By turns, and each first every other time: a machine that gets slower or faster does so to both.
    const order = n % 2 === 0 ? ["wide", "narrow"] : ["narrow", "wide"];
    const taken: Record<string, number> = {};
    for (const dagId of order) taken[dagId] = (await rig.run([dagId])).ms;
    const { narrow = 0, wide = 0 } = taken;
    times.wide.push(wide);
    times.narrow.push(narrow);
    ratios.push(narrow / wide);
  }
  const rate = (ms: readonly number[]) => digits(tasks / (median(ms) / 1_000));
  return [
    {
      scenario: "d",
      what: `${tasks.toLocaleString("en-US")} ready tasks, 8 processes: time with a pool of 8 slots against one of 100,000`,
      value: median(ratios),
      unit: "x",
      bar: { atMost: 1.05 },
      note: `median of ${ratios.length} pairs by turns; ${rate(times.narrow)} against ${rate(times.wide)} tasks/s`,
    },
  ];
}
