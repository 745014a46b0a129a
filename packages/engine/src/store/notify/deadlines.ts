/**
 * Deadlines as rows. Two kinds of transactions, each in any number of processes:
 *
 * *Keep* processes the notes of runs that were created, started or ended, and inserts a row for each deadline as soon as
 * its due time is known. *Judge* decides the due rows: a miss is stored with its deliveries and its signal.
 *
 *  - Locks: the notes, or the due rows, with SKIP LOCKED. Runs are only read, after the row is locked, so that the data
 *    is no older than the row. The keys of the signals are locked last, in their order.
 *  - Crash before the commit: notes and due rows are unchanged, and another process finds them. Crash after it: the miss
 *    is stored and its deliveries are due. Lost reply: a repeated call finds nothing to do.
 *  - Concurrent calls: the second skips the rows that the first has locked. Two notes of one run in two transactions: the
 *    unique key allows one row, which counts again only for a run that was cleared more often than the row records.
 *  - Late calls: no lease is needed; the database's clock and the stored rows decide.
 */
import type { DeadlineAction, DeadlineManifest } from "@tradewind/sdk/manifest";
import { type DeadlineFacts, deadlineDue, deadlineVerdict } from "../../model/index.ts";
import type { Connection, Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { type SignalDraft, sendSignals } from "../signal/signals.ts";
import { addDeliveries, type DeliveryWrite } from "./deliveries.ts";

/** The deadlines of one DAG version; `taskId` "" for those of the run. */
export interface OwnedDeadlines {
  readonly taskId: string;
  readonly deadlines: readonly DeadlineManifest[];
}

/** Versions never change, so the result can be cached. */
export type DeadlinesOf = (tx: Connection, versionId: number) => Promise<readonly OwnedDeadlines[]>;

interface RunWithDeadlines {
  readonly id: number;
  readonly dag_id: string;
  readonly version_id: number;
  readonly run_type: string;
  readonly clear_number: number;
  readonly queued_at: Date;
  readonly logical_date: Date | null;
  readonly started_at: Date | null;
}

interface JudgedRow {
  readonly id: number;
  readonly dag_run_id: number;
  readonly task_id: string;
  readonly ordinal: number;
  readonly counts_from: string;
  readonly actions: readonly DeadlineAction[];
  readonly due_at: Date;
  readonly dag_id: string;
  readonly run_id: string;
  readonly logical_date: Date | null;
  readonly succeeded_at: Date | null;
  readonly now: Date;
}

/** Whether there are notes, and the milliseconds until the next deadline and delivery are due. */
export interface DueDeadlines {
  readonly hasNotes: boolean;
  readonly dueInMs: number | null;
  readonly deliveryInMs: number | null;
}

const inMs = (moment: string) => `extract(epoch FROM ${moment} - now())::float8 * 1000`;

/** Indexes: deadline_note_pkey, deadline_due, delivery_due: reads the first entry of each. */
const LOOK = statement(
  "deadline-look",
  `SELECT EXISTS (SELECT FROM deadline_note) AS "hasNotes",
     (SELECT ${inMs("due_at")} FROM deadline WHERE state = 'pending' ORDER BY due_at LIMIT 1) AS "dueInMs",
     (SELECT ${inMs("next_try_at")} FROM delivery WHERE state = 'pending'
      ORDER BY next_try_at LIMIT 1) AS "deliveryInMs"`,
);

const TAKE_NOTES = statement(
  "deadline-take-notes",
  `DELETE FROM deadline_note WHERE id IN (
     SELECT id FROM deadline_note ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)
   RETURNING dag_run_id`,
);

const NOTED_RUNS = statement(
  "deadline-noted-runs",
  `SELECT r.id, r.dag_id, r.version_id, r.run_type, r.clear_number, r.queued_at, r.logical_date, r.started_at
   FROM dag_run r WHERE r.id = ANY($1) ORDER BY r.id`,
);

const OF_VERSION = statement(
  "deadline-of-version",
  `SELECT '' AS "taskId", v.manifest->'deadlines' AS deadlines FROM dag_version v
   WHERE v.id = $1 AND v.manifest ? 'deadlines'
   UNION ALL
   SELECT t->>'taskId', t->'deadlines' FROM dag_version v,
     jsonb_path_query(v.manifest, '$.tasks[*] ? (exists (@.deadlines))') AS t
   WHERE v.id = $1`,
);

/** Index: dag_run_succeeded. */
const LAST_RUNS = `SELECT r.id, r.started_at, r.ended_at FROM dag_run r
   WHERE r.dag_id = $1 AND r.state = 'success' AND r.started_at IS NOT NULL AND r.id <> $2
   ORDER BY r.ended_at DESC LIMIT $3`;

const LAST_OF_RUN = statement(
  "deadline-last-runs",
  `SELECT extract(epoch FROM l.ended_at - l.started_at)::float8 * 1000 AS ms FROM (${LAST_RUNS}) AS l
   ORDER BY l.ended_at DESC`,
);

/** From the start of the run to the end of the task's last instance. */
const LAST_OF_TASK = statement(
  "deadline-last-tasks",
  `SELECT extract(epoch FROM max(t.ended_at) - l.started_at)::float8 * 1000 AS ms
   FROM (${LAST_RUNS}) AS l JOIN task_instance t ON t.dag_run_id = l.id AND t.task_id = $4 AND t.state = 'success'
   GROUP BY l.id, l.started_at, l.ended_at ORDER BY l.ended_at DESC`,
);

/**
 * The deadline of a cleared run counts again. If its due time has not moved (it counts from the logical date), a miss has
 * already been reported and stays; a met deadline may still change.
 */
const KEEP = statement(
  "deadline-keep",
  `INSERT INTO deadline AS d (dag_run_id, task_id, ordinal, counts_from, actions, due_at, clear_number)
   SELECT u.run, u.task, u.ordinal, u.counts_from, u.actions, to_timestamp(u.due / 1000), u.cleared
   FROM unnest($1::bigint[], $2::text[], $3::int[], $4::text[], $5::json[], $6::float8[], $7::int[])
     AS u(run, task, ordinal, counts_from, actions, due, cleared)
   JOIN dag_run r ON r.id = u.run
   ON CONFLICT (dag_run_id, task_id, ordinal) DO UPDATE
     SET counts_from = EXCLUDED.counts_from, actions = EXCLUDED.actions, due_at = EXCLUDED.due_at,
         clear_number = EXCLUDED.clear_number, state = 'pending', decided_at = NULL
     WHERE d.clear_number < EXCLUDED.clear_number AND (d.state <> 'missed' OR d.due_at <> EXCLUDED.due_at)`,
);

const LOCK_OF_RUNS = statement(
  "deadline-lock-of-runs",
  `SELECT d.id FROM deadline d JOIN dag_run r ON r.id = d.dag_run_id
   WHERE d.dag_run_id = ANY($1) AND d.state = 'pending' AND r.state = 'success'
   FOR UPDATE OF d SKIP LOCKED`,
);

const LOCK_DUE = statement(
  "deadline-lock-due",
  `SELECT id FROM deadline WHERE state = 'pending' AND due_at <= now() ORDER BY due_at LIMIT $1
   FOR UPDATE SKIP LOCKED`,
);

/**
 * A task has succeeded when all its instances have; skipped instances cannot be late. A task that the run no longer has
 * succeeds with the run.
 */
const FACTS = statement(
  "deadline-facts",
  `SELECT d.id, d.dag_run_id, d.task_id, d.ordinal, d.counts_from, d.actions, d.due_at, r.dag_id, r.run_id, r.logical_date,
     clock_timestamp() AS now,
     CASE WHEN d.task_id = '' THEN CASE WHEN r.state = 'success' THEN r.ended_at END
          ELSE (SELECT CASE WHEN coalesce(bool_and(t.state IN ('success', 'skipped', 'removed')), r.state = 'success')
                            THEN coalesce(max(t.ended_at), r.ended_at, r.started_at) END
                FROM task_instance t WHERE t.dag_run_id = d.dag_run_id AND t.task_id = d.task_id)
     END AS succeeded_at
   FROM deadline d JOIN dag_run r ON r.id = d.dag_run_id
   WHERE d.id = ANY($1) ORDER BY d.due_at, d.id`,
);

const DECIDE = statement(
  "deadline-decide",
  "UPDATE deadline SET state = $2, decided_at = now() WHERE id = ANY($1)",
);

export async function readDueDeadlines(db: Connection): Promise<DueDeadlines> {
  return (await db.one<DueDeadlines>(LOOK)) ?? { hasNotes: false, dueInMs: null, deliveryInMs: null };
}

export function deadlinesOfVersion(tx: Connection, versionId: number): Promise<OwnedDeadlines[]> {
  return tx.rows<OwnedDeadlines>(OF_VERSION, [versionId]);
}

/** Returns the number of notes, and the number of deadlines found missed. */
export function keepDeadlines(
  db: Database,
  deadlinesOf: DeadlinesOf,
  limit: number,
): Promise<{ taken: number; missed: number }> {
  return db.transaction(async (tx) => {
    const notes = await tx.rows<{ dag_run_id: number }>(TAKE_NOTES, [limit]);
    if (notes.length === 0) return { taken: 0, missed: 0 };
    const ids = [...new Set(notes.map((note) => note.dag_run_id))];
    const rows: KeptRow[] = [];
    for (const run of await tx.rows<RunWithDeadlines>(NOTED_RUNS, [ids])) {
      rows.push(...(await rowsOf(tx, run, await deadlinesOf(tx, run.version_id))));
    }
    if (rows.length > 0) await tx.rows(KEEP, keptColumns(rows));
    // Deadlines of runs that have succeeded are decided before they are due.
    const open = await tx.rows<{ id: number }>(LOCK_OF_RUNS, [ids]);
    return { taken: notes.length, missed: await judge(tx, open) };
  });
}

/** Returns the number of due deadlines, and how many of them were missed. */
export function judgeDeadlines(db: Database, limit: number): Promise<{ due: number; missed: number }> {
  return db.transaction(async (tx) => {
    const due = await tx.rows<{ id: number }>(LOCK_DUE, [limit]);
    return { due: due.length, missed: await judge(tx, due) };
  });
}

interface KeptRow {
  readonly runId: number;
  readonly taskId: string;
  readonly ordinal: number;
  readonly deadline: DeadlineManifest;
  readonly dueAt: number;
  readonly clearNumber: number;
}

async function rowsOf(
  tx: Connection,
  run: RunWithDeadlines,
  owned: readonly OwnedDeadlines[],
): Promise<readonly KeptRow[]> {
  const rows: KeptRow[] = [];
  for (const { taskId, deadlines } of owned) {
    for (const [ordinal, deadline] of deadlines.entries()) {
      const dueAt = deadlineDue(deadline, {
        queuedAt: run.queued_at.getTime(),
        logicalDate: run.logical_date?.getTime() ?? null,
        isBackfill: run.run_type === "backfill",
        startedAt: run.started_at?.getTime() ?? null,
        lastMs: await lastLengths(tx, run, taskId, deadline),
      });
      if (dueAt !== null)
        rows.push({ runId: run.id, taskId, ordinal, deadline, dueAt, clearNumber: run.clear_number });
    }
  }
  return rows;
}

async function lastLengths(
  tx: Connection,
  run: RunWithDeadlines,
  taskId: string,
  { after }: DeadlineManifest,
): Promise<DeadlineFacts["lastMs"]> {
  if (typeof after === "string" || run.started_at === null) return [];
  const values = [run.dag_id, run.id, after.averageOf];
  const rows =
    taskId === ""
      ? await tx.rows<{ ms: number }>(LAST_OF_RUN, values)
      : await tx.rows<{ ms: number }>(LAST_OF_TASK, [...values, taskId]);
  return rows.map(({ ms }) => ms);
}

function keptColumns(rows: readonly KeptRow[]): unknown[] {
  return [
    rows.map((row) => row.runId),
    rows.map((row) => row.taskId),
    rows.map((row) => row.ordinal),
    rows.map(({ deadline: { after } }) => (typeof after === "string" ? after : "average")),
    rows.map(({ deadline }) => JSON.stringify(deadline.actions)),
    rows.map((row) => row.dueAt),
    rows.map((row) => row.clearNumber),
  ];
}

/** The rows are locked. Returns how many were missed. */
async function judge(tx: Connection, locked: readonly { id: number }[]): Promise<number> {
  if (locked.length === 0) return 0;
  const rows = await tx.rows<JudgedRow>(FACTS, [locked.map(({ id }) => id)]);
  const verdicts = Map.groupBy(rows, (row) =>
    deadlineVerdict(row.due_at.getTime(), {
      succeededAt: row.succeeded_at?.getTime() ?? null,
      now: row.now.getTime(),
    }),
  );
  const met = verdicts.get("met") ?? [];
  const missed = verdicts.get("missed") ?? [];
  if (met.length > 0) await tx.rows(DECIDE, [met.map(({ id }) => id), "met"]);
  if (missed.length === 0) return 0;
  const ids = missed.map(({ id }) => id);
  await tx.rows(DECIDE, [ids, "missed"]);
  const deliveries = missed.flatMap(deliveriesOf);
  if (deliveries.length > 0) await addDeliveries(tx, deliveries);
  await sendSignals(tx, missed.map(signalOf));
  return missed.length;
}

/** A signal of the engine. */
function signalOf(row: JudgedRow): SignalDraft {
  const { dag_id: dagId, run_id: runId, task_id: taskId } = row;
  const key = taskId === "" ? `${dagId}/${runId}` : `${dagId}/${runId}/${taskId}`;
  return { namespace: "deadline", key, value: { state: "missed", ...factsOf(row) }, sender: "engine" };
}

function deliveriesOf(row: JudgedRow): DeliveryWrite[] {
  const { dag_run_id: runId, id: deadlineId, task_id: taskId } = row;
  const report = {
    event: "deadline.missed",
    ...factsOf(row),
    logicalDate: row.logical_date?.toISOString() ?? null,
  };
  const of = { runId, event: "deadline", deadlineId, taskId: taskId === "" ? null : taskId } as const;
  return row.actions.map((action, place) => {
    return { ...of, groupId: null, mapIndex: -1, place, action, report, cause: null };
  });
}

function factsOf(row: JudgedRow) {
  return {
    dagId: row.dag_id,
    runId: row.run_id,
    taskId: row.task_id === "" ? null : row.task_id,
    ordinal: row.ordinal,
    after: row.counts_from,
    dueAt: row.due_at.toISOString(),
  };
}
