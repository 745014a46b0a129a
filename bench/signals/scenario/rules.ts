/**
 * A signal sent in one process, a rule of a run that a scheduler drives in another, a task that it starts in a third:
 * from the call of `send` to the first line of the task's code. The run is active all the time.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Figure } from "../../result.ts";
import { openRig, type Rig } from "../../rig.ts";
import { digits, quantile } from "../../statistics.ts";
import { watchLateness } from "../lateness.ts";
import type { Moment } from "../participant.ts";
import { type ParticipantProcess, startParticipant } from "../participant-process.ts";

const TASKS = 20;
const WARM_UPS = 20;

/** Each task has its own signal, and records its start times in its own file. */
function reactingFile(folder: string): string {
  return `import { appendFileSync } from "node:fs";
import { dag, signal, start } from "tradewind";

export default dag("reacting", {}, (d) => {
  for (let n = 0; n < ${TASKS}; n++)
    d.task("t" + n, { on: [start(signal("go" + n))] }, () => {
      const at = Number(process.hrtime.bigint()) / 1e6;
      appendFileSync(${JSON.stringify(folder)} + "/" + n, at + "\\n");
    });
});
`;
}

export async function startedByRules(options: { readonly quick: boolean }): Promise<Figure[]> {
  const rig = await openRig();
  const senders: ParticipantProcess[] = [];
  try {
    await rig.publish({ "reacting.ts": reactingFile(rig.home) });
    await rig.create(["reacting"]);
    const sender = await startParticipant({ kind: "postgres", url: rig.database.url, notify: true });
    senders.push(sender);
    const bench = { rig, sender, begun: new Array<number>(TASKS).fill(0) };
    // Each task process has loaded the code.
    await latencies(bench, { tasks: TASKS, each: WARM_UPS, gapMs: [50, 150] });
    const single = { tasks: 1, each: options.quick ? 20 : 200, gapMs: [50, 250] } as const;
    const many = { tasks: TASKS, each: options.quick ? 5 : 50, gapMs: [150, 250] } as const;
    return [
      figureOf("now and then", await latencies(bench, single)),
      figureOf(`${5 * TASKS} a second, for ${TASKS} tasks of a run`, await latencies(bench, many)),
      await burst(bench, options.quick ? 50 : 500),
    ];
  } finally {
    for (const each of senders) await each.stop();
    await rig.stop();
  }
}

interface Bench {
  readonly rig: Rig;
  readonly sender: ParticipantProcess;
  /** How often each task was started. */
  readonly begun: number[];
}

interface Load {
  readonly tasks: number;
  /** Signals per task. */
  readonly each: number;
  readonly gapMs: readonly [number, number];
}

interface Found {
  readonly ms: readonly number[];
  readonly late: readonly number[];
}

async function latencies(bench: Bench, { each, gapMs, tasks }: Load): Promise<Found> {
  await sleep(500);
  const lateness = watchLateness();
  const ms = await Promise.all(
    Array.from({ length: tasks }, async (_, task) => {
      const { sent } = await bench.sender.pace({ signals: each, gapMs, key: `go${task}` });
      // The nth signal starts the task for the nth time.
      const starts = await started(bench, task, each);
      return sent.map(({ at }: Moment, n) => (starts[n] ?? Number.NaN) - at);
    }),
  );
  return { ms: ms.flat(), late: lateness() };
}

/** Many at once for one task: it runs as often, one after the other. */
async function burst(bench: Bench, signals: number): Promise<Figure> {
  const { sent } = await bench.sender.pace({ signals, gapMs: [0, 0], key: "go0" });
  const starts = await started(bench, 0, signals);
  const seconds = ((starts.at(-1) ?? Number.NaN) - (sent[0]?.at ?? Number.NaN)) / 1_000;
  return {
    scenario: "f",
    what: `${signals} signals at once for one task: until it was started as often`,
    value: seconds,
    unit: "s",
    note: `${digits(signals / seconds)} starts/s, each after the end of the one before`,
  };
}

/** The times of its next `count` starts, once there are as many. */
async function started({ begun, rig }: Bench, task: number, count: number): Promise<number[]> {
  const from = begun[task] ?? 0;
  const deadline = performance.now() + 120_000;
  for (;;) {
    const text = await readFile(join(rig.home, String(task)), "utf8").catch(() => "");
    const moments = text.split("\n").slice(0, -1).map(Number);
    if (moments.length >= from + count) {
      begun[task] = from + count;
      return moments.slice(from, from + count);
    }
    if (performance.now() > deadline)
      throw new Error(`task ${task} was started ${moments.length - from} times for ${count} signals`);
    await sleep(20);
  }
}

function figureOf(what: string, { late, ms }: Found): Figure {
  return {
    scenario: "f",
    what: `send to first line of a task that a rule starts, ${what}: p99`,
    value: quantile(ms, 0.99),
    unit: "ms",
    note: `p50 ${digits(quantile(ms, 0.5))}, p90 ${digits(quantile(ms, 0.9))}, longest ${digits(quantile(ms, 1))} ms of ${ms.length}; timers were ${digits(quantile(late, 0.5))} (p50), ${digits(quantile(late, 0.99))} ms (p99) late`,
  };
}
