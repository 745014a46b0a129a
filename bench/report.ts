/** Prints and stores the results of any benchmark. */
import { mkdir, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Machine } from "./machine.ts";
import { type Figure, passes } from "./result.ts";
import { digits } from "./statistics.ts";
import { figureTable } from "./table.ts";

export interface Results {
  readonly at: string;
  readonly machine: Machine;
  /** Processes waiting for a core, over the last minute: more than 0 before the start is other work. */
  readonly load: { readonly before: number; readonly after: number };
  readonly figures: readonly JudgedFigure[];
}

interface JudgedFigure extends Figure {
  readonly passed: boolean | null;
}

export function judged(figures: readonly Figure[]): JudgedFigure[] {
  return figures.map((figure) => ({ ...figure, passed: passes(figure) }));
}

export function print({ machine, load, figures }: Results): void {
  const { cores, cpu, memoryGb, node, postgres, fsync, synchronousCommit, commitMs } = machine;
  console.log(`
${cores} cores (${cpu}), ${memoryGb} GB; Node ${node}; PostgreSQL ${postgres}, fsync ${fsync}, synchronous_commit ${synchronousCommit}
one small commit: ${digits(commitMs)} ms (p50); load before ${digits(load.before)}, after ${digits(load.after)}: above 0 before means that others were using the machine
Each task runs in a warm child process of its own; every step is committed.
`);
  if (figures.length > 0) console.log(figureTable(figures));
  const missed = figures.filter(({ passed }) => passed === false).length;
  if (missed > 0) console.log(`\n${missed} bar${missed > 1 ? "s" : ""} missed`);
}

/** Returns the file it wrote. */
export async function store(results: Results, prefix = ""): Promise<string> {
  const folder = fileURLToPath(new URL("./results/", import.meta.url));
  await mkdir(folder, { recursive: true });
  const file = `${folder}${prefix}${results.at.replaceAll(":", "-")}.json`;
  await writeFile(file, `${JSON.stringify(results, null, 2)}\n`);
  return file;
}
