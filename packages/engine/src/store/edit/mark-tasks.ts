/** Sets the states of tasks manually. */
import type { Connection } from "../database/database.ts";
import { endStarts } from "./edited-drives.ts";
import {
  type InstanceKey,
  isImplied,
  keyOf,
  named,
  type RunSelection,
  readInstances,
  withRestarted,
} from "./edited-instances.ts";
import { clearChosen, endInstances } from "./instance-states.ts";
import { bumpRuns, idsOf, isEnded, lockRuns, reopenRuns } from "./locked-runs.ts";

export interface MarkEdit {
  readonly runs: readonly RunSelection[];
  readonly state: "success" | "failed" | "skipped";
  readonly dryRun: boolean;
}

/** The instances that changed (or would change) their state: the marked ones, and those that restart. */
export interface MarkResult {
  readonly affected: readonly InstanceKey[];
}

export async function markTasks(tx: Connection, edit: MarkEdit): Promise<MarkResult> {
  const runs = await lockRuns(tx, edit.runs);
  const rows = await readInstances(tx, idsOf(runs));
  // An implied skip is marked too: from now on it stays in any case.
  const chosen = named(rows, edit.runs).filter((row) => row.state !== edit.state || isImplied(row));
  if (chosen.length === 0) return { affected: [] };
  const marked = new Set(chosen);
  const touched = new Set(chosen.map((row) => row.dag_run_id));
  const changed = runs.filter((run) => touched.has(run.id));
  const after = rows.map((row) => {
    return marked.has(row) ? { ...row, state: edit.state, attempt: null, is_marked: true } : row;
  });
  const again = await withRestarted(tx, {
    rows: after,
    chosen: new Set(),
    runIds: idsOf(changed.filter(({ ending }) => ending === null)),
    latestVersion: false,
    wholeGroups: new Set(),
  });
  if (!edit.dryRun) {
    await endStarts(tx, chosen);
    const states = chosen.map(() => edit.state);
    await endInstances(tx, chosen, { states, reason: `marked ${edit.state} manually`, isMarked: true });
    await bumpRuns(tx, idsOf(changed.filter((run) => !isEnded(run))));
    // The state of an ended run is decided again from its tasks.
    await reopenRuns(tx, idsOf(changed.filter(isEnded)), false);
    await clearChosen(tx, again, undefined);
  }
  return { affected: [...chosen, ...again].map(keyOf) };
}
