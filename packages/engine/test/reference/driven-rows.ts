/** Rows of a driven run as a database would hold them. */
import type { DagManifest } from "@tradewind/sdk/manifest";
import { type Change, type InstanceRow, OCCUPYING } from "../../src/model/index.ts";

export function freshRows(manifest: DagManifest): Map<string, InstanceRow> {
  const fresh = {
    mapIndex: -1,
    state: "none",
    tryNumber: 0,
    attempt: null,
    retryAt: null,
    infraLosses: 0,
  } as const;
  return new Map(
    manifest.tasks.map(({ retries, taskId }) => [taskId, { taskId, ...fresh, maxTries: retries }]),
  );
}

/** As the batch writes it. */
export function rowAfter({ instance }: Change): InstanceRow {
  const { attempt, infraLosses, maxTries, node, retryAt, startedAt, state, step, tryNumber, wait } = instance;
  return {
    ...{ taskId: node.id, mapIndex: -1, state, tryNumber, maxTries, attempt, retryAt, infraLosses },
    ...{ startedAt, step, wait },
  };
}

/** What is under way begins anew when it has ended, everything else at once. */
export function clearedRow(row: InstanceRow, retries: number): InstanceRow {
  const anew = { maxTries: row.tryNumber + retries, infraLosses: 0, retryAt: null, step: null } as const;
  if (OCCUPYING.has(row.state)) return { ...row, ...anew, state: "restarting" };
  return { ...row, ...anew, state: "none", attempt: null };
}

export function markedRow(row: InstanceRow): InstanceRow {
  return { ...row, state: "success", retryAt: null, attempt: null, step: null };
}
