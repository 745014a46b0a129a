/**
 * Several schedulers with the same number of slots: the time for a load of sleeping tasks, against the time in which every
 * slot is always busy. For wide runs, chains and many small runs, for schedulers that join later, and after one left.
 *
 * Chains need every slot in every round only if the longest rest always goes first: 24 chains from end to end and 16 after
 * them take six rounds, not five. That order needs no lookahead. The default weight of a task is the length of the chain
 * behind it, and for chains of equal tasks it leads to the shortest possible time. So the bar is the time of busy slots.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Figure } from "../../result.ts";
import { digits } from "../../statistics.ts";
import type { SuiteOptions as Options } from "../../suite.ts";
import { type Crew, openCrew } from "../crew.ts";

const SLOTS = 8;
const SCHEDULERS = 3;

interface Load {
  readonly what: string;
  readonly runs: number;
  /** Concurrent tasks of a run, and tasks in a row. */
  readonly wide: number;
  readonly long: number;
  readonly taskMs: number;
  /** The time in task lengths when every slot is busy. */
  readonly rounds: number;
  /** Schedulers at the start. */
  readonly from?: number;
  /** Called after the runs have been queued. */
  readonly meanwhile?: (crew: Crew) => Promise<void>;
}

export async function sharing(options: Options): Promise<Figure[]> {
  const taskMs = options.quick ? 500 : 2_000;
  const chains = { runs: 40, wide: 1, long: 3, taskMs };
  const loads: Load[] = [
    { what: "6 runs of 4 tasks", runs: 6, wide: 4, long: 1, taskMs: 2 * taskMs, rounds: 1 },
    { what: "40 chains of 3 tasks", ...chains, rounds: 5 },
    { what: "240 runs of a short task", runs: 240, wide: 1, long: 1, taskMs: taskMs / 2, rounds: 10 },
    {
      what: "40 chains, two schedulers join after a round",
      ...chains,
      from: 1,
      // One of 8 tasks, then 112 tasks in five of 24.
      rounds: 6,
      meanwhile: async (crew) => {
        await sleep(taskMs);
        await Promise.all([crew.join(), crew.join()]);
      },
    },
    {
      what: "40 chains, one scheduler leaves in the second round",
      ...chains,
      // One of 24 tasks, one of 16 and 8 that are lost, 80 tasks in five of 16.
      rounds: 7,
      meanwhile: async (crew) => {
        await sleep(1.5 * taskMs);
        await crew.leave();
      },
    },
  ];
  const figures: Figure[] = [];
  for (const load of loads) figures.push(await measure(load));
  return figures;
}

async function measure(load: Load): Promise<Figure> {
  const { from = SCHEDULERS, rounds, runs, taskMs, what } = load;
  const crew = await openCrew(SLOTS);
  try {
    await crew.publish({
      "warm.ts": file("warm", ['d.task("t", () => sleep(300));']),
      "load.ts": loadFile(load),
    });
    for (let n = 0; n < from; n++) await crew.join();
    // The processes have started, and the schedulers have seen each other.
    await sleep(500);
    await crew.ended(await crew.queue("warm", 4 * SLOTS * from));
    const ids = await crew.queue("load", runs);
    const started = performance.now();
    await Promise.all([load.meanwhile?.(crew), crew.ended(ids)]);
    const ms = performance.now() - started;
    return {
      scenario: "e",
      what: `${SCHEDULERS} schedulers of ${SLOTS} slots, ${what}: against every slot busy`,
      value: ms / (rounds * taskMs),
      unit: "x",
      bar: { atMost: 1.2 },
      note: `${digits(ms / 1_000)} s against ${digits((rounds * taskMs) / 1_000)} s`,
    };
  } finally {
    await crew.stop();
  }
}

function loadFile({ long, taskMs, wide }: Load): string {
  const tasks: string[] = [];
  for (let w = 0; w < wide; w++)
    for (let l = 0; l < long; l++) {
      const after = l === 0 ? "{}" : `{ after: t${w}_${l - 1} }`;
      tasks.push(`const t${w}_${l} = d.task("t${w}_${l}", ${after}, () => sleep(${taskMs}));`);
    }
  return file("load", tasks);
}

const file = (
  dagId: string,
  tasks: readonly string[],
) => `import { setTimeout as wait } from "node:timers/promises";
import { dag } from "tradewind";

const sleep = async (ms) => { await wait(ms); };

export default dag("${dagId}", { maxActiveRuns: 10_000 }, (d) => {
  ${tasks.join("\n  ")}
});
`;
