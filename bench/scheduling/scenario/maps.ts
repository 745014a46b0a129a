/** One map of many no-ops: its speed, its memory, and whether an event costs more in a larger map. */
import { cpuSum } from "../../process-tree.ts";
import type { Figure } from "../../result.ts";
import type { Rig, RunsDone } from "../../rig.ts";
import { digits, median } from "../../statistics.ts";
import type { SuiteOptions as Options } from "../../suite.ts";

const SIZES = [10_000, 100_000];

function mapFile(dagId: string, items: number): string {
  return `import { dag } from "tradewind";

export default dag("${dagId}", { maxActiveTasks: 1_000_000 }, (d) => {
  const list = d.task("list", () => Array.from({ length: ${items} }, (_, n) => n));
  const each = d.map("each", { over: list }, () => {});
  d.task("all", { after: each }, () => {});
});
`;
}

export async function maps(rig: Rig, options: Options): Promise<Figure[]> {
  const sizes = options.quick ? SIZES.map((size) => size / 10) : SIZES;
  await rig.publish(
    Object.fromEntries(sizes.map((size) => [`map_${size}.ts`, mapFile(`map_${size}`, size)])),
  );
  await rig.run([`map_${sizes[0]}`]);
  const measured: { size: number; done: RunsDone[]; rssMb: number }[] = [];
  for (const size of sizes) {
    const done: RunsDone[] = [];
    let rss = 0;
    const watch = setInterval(() => {
      rss = Math.max(rss, process.memoryUsage().rss);
    }, 100);
    for (let n = 0; n < (size === sizes[0] ? 5 : 2); n++) done.push(await rig.run([`map_${size}`]));
    clearInterval(watch);
    measured.push({ size, done, rssMb: rss / 1_048_576 });
  }
  const mainUs = ({ done, size }: (typeof measured)[number]) =>
    (median(done.map(({ cpu }) => cpu.main)) * 1_000) / size;
  const figures = measured.flatMap((each): Figure[] => {
    const name = `map of ${each.size.toLocaleString("en-US")} no-ops`;
    const ms = median(each.done.map((done) => done.ms));
    const cpu = (median(each.done.map((done) => cpuSum(done.cpu))) * 1_000) / each.size;
    return [
      {
        scenario: "a",
        what: name,
        value: each.size / (ms / 1_000),
        unit: "tasks/s",
        note: `${digits(ms / 1_000)} s; CPU ${digits(cpu)} us/task, of it the scheduler ${digits(mainUs(each))}`,
      },
      {
        scenario: "a",
        what: `${name}: memory of the scheduler's process`,
        value: each.rssMb,
        unit: "MB",
        note: "the most, with this benchmark in it",
      },
    ];
  });
  const [small, large] = [measured[0]!, measured.at(-1)!];
  return [
    ...figures,
    {
      scenario: "a",
      what: "scheduler CPU per task, the large map against the small: flat",
      value: mainUs(large) / mainUs(small),
      unit: "x",
      bar: { atMost: 1.5 },
    },
  ];
}
