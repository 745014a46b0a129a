/**
 * The completed steps of a function task, by name. A step is stored before the task continues, and only for the current
 * attempt. The first write of a name wins: if the reply to a write is lost, the attempt finds its own result.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { JournalEntry } from "@tradewind/sdk/program";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

export interface AttemptKey {
  readonly runId: number;
  readonly taskId: string;
  readonly mapIndex: number;
  readonly tryNumber: number;
  readonly attempt: string;
}

/**
 * FOR SHARE: an edit or take-over that ends this attempt commits before or after this statement. The run is locked first,
 * because an edit locks the run before its instances.
 */
const RECORD = statement(
  "journal-record",
  `WITH run AS MATERIALIZED (SELECT id FROM dag_run WHERE id = $1 FOR KEY SHARE),
   mine AS (
     SELECT 1 FROM task_instance
     WHERE dag_run_id = (SELECT id FROM run) AND task_id = $2 AND map_index = $3 AND attempt = $5 AND state IN ('queued', 'running')
     FOR SHARE
   ), kept AS (
     INSERT INTO journal (dag_run_id, task_id, map_index, try_number, name, value)
     SELECT $1, $2, $3, $4, $6, $7 FROM mine
     ON CONFLICT DO NOTHING
   )
   SELECT count(*)::int AS mine FROM mine`,
);

const RECALL = statement(
  "journal-recall",
  `SELECT name, json_build_object('kind', 'step', 'value', value) AS entry FROM journal
   WHERE dag_run_id = $1 AND task_id = $2 AND map_index = $3 AND try_number = $4
   UNION ALL
   SELECT name, json_build_object('outcome', outcome, 'afterMs', extract(epoch FROM timeout_at - deferred_at) * 1000)
   FROM deferral
   WHERE dag_run_id = $1 AND task_id = $2 AND map_index = $3 AND try_number = $4 AND name IS NOT NULL
     AND end_kind IN ('resumed', 'timeout')`,
);

/** False: the attempt is no longer current, nothing was stored. */
export async function recordStep(
  db: Connection,
  key: AttemptKey,
  step: { readonly name: string; readonly value: Json },
): Promise<boolean> {
  const { runId, taskId, mapIndex, tryNumber, attempt } = key;
  const values = [runId, taskId, mapIndex, tryNumber, attempt, step.name, JSON.stringify(step.value)];
  return ((await db.one<{ mine: number }>(RECORD, values))?.mine ?? 0) > 0;
}

export async function recordedSteps(
  db: Connection,
  key: Omit<AttemptKey, "attempt">,
): Promise<Record<string, JournalEntry>> {
  const { runId, taskId, mapIndex, tryNumber } = key;
  const rows = await db.rows<{ name: string; entry: StoredEntry }>(RECALL, [
    runId,
    taskId,
    mapIndex,
    tryNumber,
  ]);
  return Object.fromEntries(rows.map(({ name, entry }) => [name, journalEntry(entry)]));
}

type StoredEntry =
  | Extract<JournalEntry, { kind: "step" }>
  | {
      readonly outcome:
        | { readonly kind: "event"; readonly payload: Json }
        | Extract<JournalEntry, { kind: "failed" }>
        | { readonly kind: "timeout" };
      readonly afterMs: number | null;
    };

function journalEntry(entry: StoredEntry): JournalEntry {
  if ("kind" in entry) return entry;
  const { outcome, afterMs } = entry;
  if (outcome.kind === "event") return { kind: "event", value: outcome.payload };
  if (outcome.kind === "failed") return outcome;
  return { kind: "timeout", afterMs: Number(afterMs ?? 0) };
}
