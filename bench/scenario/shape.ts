/** The three shapes that Tradewind and its peers are measured with, and their measurement. */
import { cpuSum } from "../process-tree.ts";
import type { Bar, Figure } from "../result.ts";
import type { Rig, RunsDone } from "../rig.ts";
import { chainFile, fanFile, independentFile } from "../shapes.ts";
import { digits, median, min } from "../statistics.ts";

export interface Shape {
  readonly key: "a" | "b" | "c" | "d";
  readonly what: string;
  readonly unit: string;
  readonly bar: Bar;
  readonly tasks: number;
  readonly dagIds: readonly string[];
  /** Runs until the measured code is compiled and the task processes exist. */
  readonly warmUps: number;
  /** Measured runs per requested run: short ones need more for the same precision. */
  readonly times: number;
  /** The value of a run with this duration. */
  value(ms: number): number;
}

export const SHAPE_FILES: Readonly<Record<string, string>> = {
  "chain.ts": chainFile("chain", 100),
  "fan.ts": fanFile("fan", 1_000),
  "ten.ts": chainFile("ten", 10),
  "independent.ts": independentFile("independent", 10_000),
};

export const CHAIN: Shape = {
  key: "a",
  what: "chain of 100",
  unit: "ms/task",
  bar: { atMost: 2 },
  tasks: 100,
  dagIds: ["chain"],
  warmUps: 5,
  times: 3,
  value: (ms) => ms / 100,
};

export const FAN: Shape = {
  key: "b",
  what: "fan-out of 1,000 and fan-in",
  unit: "s",
  bar: { atMost: 1 },
  tasks: 1_002,
  dagIds: ["fan"],
  warmUps: 2,
  times: 3,
  value: (ms) => ms / 1_000,
};

export const RUNS: Shape = {
  key: "c",
  what: "100 runs x 10 tasks at once",
  unit: "s",
  bar: { atMost: 1 },
  tasks: 1_000,
  dagIds: Array.from({ length: 100 }, () => "ten"),
  warmUps: 2,
  times: 3,
  value: (ms) => ms / 1_000,
};

export const INDEPENDENT: Shape = {
  key: "d",
  what: "10,000 independent tasks",
  unit: "tasks/s",
  bar: { atLeast: 3_000 },
  tasks: 10_000,
  dagIds: ["independent"],
  warmUps: 1,
  times: 0.7,
  value: (ms) => 10_000 / (ms / 1_000),
};

export async function measure(rig: Rig, shape: Shape, repeat: number): Promise<RunsDone[]> {
  for (let n = 0; n < shape.warmUps; n++) await rig.run(shape.dagIds);
  const done: RunsDone[] = [];
  for (let n = 0; n < runsOf(shape, repeat); n++) done.push(await rig.run(shape.dagIds));
  return done;
}

export function runsOf({ times }: Shape, repeat: number): number {
  return Math.max(1, Math.round(times * repeat));
}

/** The median counts; the best, and the CPU time, show how much of it was other work on the machine. */
export function shapeFigure(shape: Shape, done: readonly RunsDone[]): Figure {
  const ms = done.map((each) => each.ms);
  const best = min(ms);
  const part = (of: "main" | "children" | "postgres") =>
    digits((median(done.map((each) => each.cpu[of])) * 1_000) / shape.tasks);
  const all = digits((median(done.map((each) => cpuSum(each.cpu))) * 1_000) / shape.tasks);
  const rate = shape.unit === "tasks/s" ? "" : `${digits(shape.tasks / (median(ms) / 1_000))} tasks/s; `;
  return {
    scenario: shape.key,
    what: shape.what,
    value: shape.value(median(ms)),
    unit: shape.unit,
    bar: shape.bar,
    note: `${rate}best ${digits(shape.value(best))} ${shape.unit}; CPU ${all} us/task: scheduler ${part("main")}, task processes ${part("children")}, PostgreSQL ${part("postgres")}`,
  };
}
