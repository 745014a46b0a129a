/** What the live stream says about a list of runs: rows change in place, new runs are counted and not inserted. */
import { useState } from "react";
import type { components } from "../../api/schema.gen.ts";
import { useLive } from "../../live/live.ts";

type Run = components["schemas"]["DAGRunResponse"];
type LiveRun = components["schemas"]["LiveRun"];

export function runKey({ dag_id, dag_run_id }: Pick<Run, "dag_id" | "dag_run_id">): string {
  return `${dag_id}\0${dag_run_id}`;
}

export interface LiveRuns {
  /** The row as it is now; null: the run was deleted. */
  readonly now: (run: Run) => Run | null;
  /** Runs that were created after the list was read, and may belong to it. */
  readonly fresh: number;
  readonly reset: () => void;
}

/** @param belongs Whether a new run would be in the list, as far as the message tells. */
export function useLiveRuns(
  rows: readonly Run[],
  belongs: (run: LiveRun) => boolean,
  reload: () => void,
): LiveRuns {
  const [changes, setChanges] = useState<ReadonlyMap<string, LiveRun>>(new Map());
  const [fresh, setFresh] = useState<ReadonlySet<string>>(new Set());
  useLive("runs", (message) => {
    if ("isLost" in message) {
      reload();
      return;
    }
    const runs = "runs" in message ? message.runs : [];
    const known = new Set(rows.map(runKey));
    const keyed = runs.map((run) => [`${run.dag_id}\0${run.run_id}`, run] as const);
    const changed = keyed.filter(([key]) => known.has(key));
    const added = keyed.filter(([key, run]) => !known.has(key) && isNew(run) && belongs(run));
    if (changed.length > 0) setChanges((before) => new Map([...before, ...changed]));
    if (added.length > 0) setFresh((before) => new Set([...before, ...added.map(([key]) => key)]));
  });
  return {
    now: (run) => {
      const change = changes.get(runKey(run));
      if (change === undefined) return run;
      if (change.state === null) return null;
      return { ...run, state: change.state, start_date: change.start_date, end_date: change.end_date };
    },
    fresh: fresh.size,
    reset: () => {
      setFresh(new Set());
      setChanges(new Map());
    },
  };
}

/** A run that ends is older than the list. */
function isNew({ state }: LiveRun): boolean {
  return state === "queued" || state === "running";
}
