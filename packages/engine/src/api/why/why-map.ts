/** Why a map as a whole has not ended: the number of instances per state, and one example per waiting state. */
import { z } from "zod";
import type { Connection } from "../../store/database/database.ts";
import { firstInStates } from "../../store/why/why-facts.ts";

/** States without a reason: nothing blocks these instances. */
const SETTLED: ReadonlySet<string> = new Set(["success", "running", "restarting", "removed"]);

export const stateCounts = z.array(z.object({ state: z.string().nullable(), count: z.number() }));
export type StateCounts = z.output<typeof stateCounts>;

/** One instance as an example of all in its state. */
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
    counts: rows.map(({ count, state }) => ({ count, state: state === "pending" ? null : state })),
    samples: rows
      .filter(({ state }) => !SETTLED.has(state))
      .map(({ count, first, state }) => ({ count, mapIndex: first, state })),
  };
}

/** "load[1] is scheduled", or "2 are scheduled, e.g. load[1]". */
export function describeState({ count, state }: Sample, name: string | null): string {
  const text = state === "pending" ? "not started" : state;
  if (count === 1) return `${name ?? "1"} is ${text}`;
  return `${count} are ${text}${name === null ? "" : `, e.g. ${name}`}`;
}

export function sumUp(counts: StateCounts): string {
  const total = counts.reduce((sum, { count }) => sum + count, 0);
  const each = counts.map(({ count, state }) => `${count} ${state ?? "not started"}`).join(", ");
  return `It is mapped, and has ${total} ${total === 1 ? "instance" : "instances"}: ${each}.`;
}
