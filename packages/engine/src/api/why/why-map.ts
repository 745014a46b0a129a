/** Why a map as a whole is not through: how many of its instances are in which state, and one of each that waits. */
import { z } from "zod";
import type { Connection } from "../../store/database/database.ts";
import { firstInStates } from "../../store/list/why.ts";

/** States that need no reason: nothing holds these instances back. */
const SETTLED: ReadonlySet<string> = new Set(["success", "running", "restarting", "removed"]);

export const stateCounts = z.array(z.object({ state: z.string().nullable(), count: z.number() }));
export type StateCounts = z.output<typeof stateCounts>;

/** One instance that stands for all in its state. */
export interface Sample {
  readonly mapIndex: number;
  readonly count: number;
  readonly state: string;
}

/** null: the run has no instance of it. */
export async function countMapped(
  connection: Connection,
  dagRunId: number,
  taskId: string,
): Promise<{ readonly counts: StateCounts; readonly samples: readonly Sample[] } | null> {
  const rows = await firstInStates(connection, dagRunId, taskId);
  if (rows.length === 0) return null;
  return {
    counts: rows.map(({ count, state }) => ({ count, state: state === "none" ? null : state })),
    samples: rows
      .filter(({ state }) => !SETTLED.has(state))
      .map(({ count, first, state }) => ({ count, mapIndex: first, state })),
  };
}

/** "2 are scheduled, such as load[1]". */
export function sayState({ count, state }: Sample, name: string | null): string {
  const such = name === null ? "" : `, ${count === 1 ? "namely" : "such as"} ${name}`;
  return `${count} ${count === 1 ? "is" : "are"} ${state === "none" ? "not started" : state}${such}`;
}

export function sumUp(counts: StateCounts): string {
  const total = counts.reduce((sum, { count }) => sum + count, 0);
  const each = counts.map(({ count, state }) => `${count} ${state ?? "not started"}`).join(", ");
  return `It is mapped, and has ${total} ${total === 1 ? "instance" : "instances"}: ${each}.`;
}
