/**
 * Retention, while services run. Deletes ended runs with everything that belongs to them (run-retention.ts), and signals
 * that no reader needs (signals-retention.ts); then ended backfills, dead letters, asset events, stopped jobs,
 * idempotency keys, audit events, and code without references. Triggers and their memory are deleted when they have no
 * waits, and import errors with their file: retention does not handle them.
 *
 * It works in batches, each one transaction of at most `batch` rows and about half a second. Locked rows are skipped.
 * Each batch selects and locks first; the DELETE checks the condition again, including later commits: a row that has got
 * a reference stays.
 *
 * Crash before the commit of a batch: no effect. Crash after it, or a lost reply: the batch is deleted, and the next call
 * continues with the rest. Concurrent calls: each skips the rows that the other has locked.
 */

import { GATHERED_EVENTS } from "../asset/asset-queue.ts";
import { CATALOGUE_LOCK } from "../dag/dag-catalogue.ts";
import { BatchPace } from "../database/batch-pace.ts";
import type { Connection, Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import {
  DELETABLE_SIGNALS,
  deleteSignals,
  STALE_LISTENER_MS,
  signalsBound,
  staleListeners,
} from "../signal/signals-retention.ts";
import { countDeletable, type Deletable } from "./history-count.ts";
import { DELETABLE_RUNS, type RunCursor, removeRuns } from "./run-retention.ts";

/** In the order of deletion: runs before the rows that they reference. */
export const CLEAN_KINDS = [
  "runs",
  "backfill_dates",
  "backfills",
  "signals",
  "dead_letters",
  "asset_events",
  "jobs",
  "idempotency_keys",
  "audit_events",
  "web_sessions",
  "sign_in_codes",
  "versions",
  "bundles",
  "shared_chunks",
  "files",
] as const;

type CleanKind = (typeof CLEAN_KINDS)[number];
export type CleanCounts = Record<CleanKind, number>;

interface CleanOptions {
  readonly olderThanMs: number;
  readonly dryRun: boolean;
  /** Maximum rows per transaction. */
  readonly batch: number;
  /** Default: all kinds. */
  readonly only?: readonly CleanKind[] | undefined;
  /** Stops after the current batch. */
  readonly signal?: AbortSignal | undefined;
  /** Listeners without a holder for this long do not prevent the deletion of signals; default: a week. */
  readonly staleListenerMs?: number;
  /** Called for each such listener. */
  readonly onStaleListener?: (listener: { readonly name: string; readonly seenAt: Date }) => void;
  readonly onProgress?: (deleted: Readonly<CleanCounts>) => void;
}

interface Kind {
  readonly deletable: Deletable;
  /** Deletes batch by batch: the number of rows, and whether there may be more. */
  readonly begin: () => (
    tx: Connection,
    options: CleanOptions & { readonly rows: number },
  ) => Promise<{ readonly removed: number; readonly isMore: boolean }>;
  /** Needs the catalogue lock: publishers may be about to reference it. */
  readonly isCatalogue?: boolean;
}

const OLD = "now() - $1::float8 * interval '1 millisecond'";

const KEY_TYPES = { ctid: "tid", hash: "text", id: "bigint" } as const;

const isBackfillOver = (id: string) => `EXISTS (
     SELECT 1 FROM backfill b WHERE b.id = ${id} AND b.ended_at < ${OLD}
       AND NOT EXISTS (SELECT 1 FROM dag_run r WHERE r.backfill_id = b.id))`;

const KINDS: Readonly<Record<CleanKind, Kind>> = {
  runs: {
    deletable: DELETABLE_RUNS,
    begin: () => {
      let cursor: RunCursor | null = null;
      return async (tx, { olderThanMs, rows }) => {
        const answer = await removeRuns(tx, { cursor, olderThanMs, rows });
        cursor = answer.cursor;
        return { removed: answer.runs, isMore: cursor !== null };
      };
    },
  },
  backfill_dates: byKey("backfill_dates", {
    table: "backfill_date",
    key: "ctid",
    order: "backfill_id",
    old: isBackfillOver("backfill_date.backfill_id"),
  }),
  backfills: byKey("backfills", {
    table: "backfill",
    key: "id",
    order: "id",
    old: `${isBackfillOver("backfill.id")} AND NOT EXISTS (SELECT 1 FROM backfill_date d WHERE d.backfill_id = backfill.id)`,
  }),
  signals: {
    deletable: DELETABLE_SIGNALS,
    begin: () => {
      // Runs and waits that begin later are younger than the signals that the first batch may delete.
      let bound: string | undefined;
      return async (tx, options) => {
        bound ??= await signalsBound(tx, options.olderThanMs);
        const removed = await deleteSignals(tx, { ...signalRetention(options), batch: options.rows, bound });
        return { removed, isMore: removed > 0 };
      };
    },
  },
  // A dead letter that is marked for a retry is kept.
  dead_letters: byKey("dead_letters", {
    table: "signal_dead_letter",
    key: "id",
    order: "id",
    old: `created_at < ${OLD} AND retry_at IS NULL`,
  }),
  // Keeps the newest event of each asset, events of runs that exist, and events gathered for the next run of a schedule.
  asset_events: byKey("asset_events", {
    table: "asset_event",
    key: "id",
    order: "id",
    old: `created_at < ${OLD}
     AND NOT EXISTS (SELECT 1 FROM signal s WHERE s.id = asset_event.id)
     AND NOT EXISTS (SELECT 1 FROM asset_event_run r WHERE r.event_id = asset_event.id)
     AND id NOT IN (${GATHERED_EVENTS})
     AND id < (SELECT max(n.id) FROM asset_event n WHERE n.asset_id = asset_event.asset_id)`,
  }),
  // A job that died unnoticed counts as ended after a day.
  jobs: byKey("jobs", {
    table: "job",
    key: "id",
    order: "id",
    old: `(state <> 'running' AND ended_at < ${OLD}
           OR state = 'running' AND lease_until < least(${OLD}, now() - interval '1 day'))
     AND NOT EXISTS (SELECT 1 FROM dag_run r WHERE r.owner_job = job.id)
     AND NOT EXISTS (SELECT 1 FROM backfill b WHERE b.owner_job = job.id)
     AND NOT EXISTS (SELECT 1 FROM callback c WHERE c.owner_job = job.id)
     AND NOT EXISTS (SELECT 1 FROM trigger t WHERE t.owner_job = job.id)
     AND NOT EXISTS (SELECT 1 FROM trigger t WHERE t.standby_job = job.id)`,
  }),
  idempotency_keys: byKey("idempotency_keys", {
    table: "idempotency_key",
    key: "ctid",
    order: "created_at",
    old: `created_at < ${OLD}`,
  }),
  audit_events: byKey("audit_events", {
    table: "audit_event",
    key: "id",
    order: "id",
    old: `at < ${OLD}`,
  }),
  web_sessions: byKey("web_sessions", {
    table: "web_session",
    key: "ctid",
    order: "expires_at",
    old: `expires_at < ${OLD}`,
  }),
  sign_in_codes: byKey("sign_in_codes", {
    table: "sign_in_code",
    key: "ctid",
    order: "expires_at",
    old: `expires_at < ${OLD}`,
  }),
  // By the age of its successor, not its own: a process that read it as current has finished using it.
  versions: byKey("versions", {
    table: "dag_version",
    key: "id",
    order: "id",
    isCatalogue: true,
    old: `EXISTS (SELECT 1 FROM dag_version n WHERE n.dag_id = dag_version.dag_id AND n.number > dag_version.number
                    AND n.created_at < ${OLD})
     AND NOT EXISTS (SELECT 1 FROM dag d WHERE d.version_id = dag_version.id)
     AND NOT EXISTS (SELECT 1 FROM dag_run r WHERE r.version_id = dag_version.id)
     AND NOT EXISTS (SELECT 1 FROM attempt_version a WHERE a.version_id = dag_version.id)
     AND NOT EXISTS (SELECT 1 FROM backfill b WHERE b.version_id = dag_version.id AND b.ended_at IS NULL)`,
  }),
  bundles: byKey("bundles", {
    table: "bundle",
    key: "hash",
    order: "created_at",
    isCatalogue: true,
    old: `created_at < ${OLD}
     AND NOT EXISTS (SELECT 1 FROM dag_version v WHERE v.bundle_hash = bundle.hash)
     AND NOT EXISTS (SELECT 1 FROM trigger t WHERE t.bundle_hash = bundle.hash)
     AND NOT EXISTS (SELECT 1 FROM callback c WHERE c.bundle_hash = bundle.hash)`,
  }),
  shared_chunks: byKey("shared_chunks", {
    table: "shared_chunk",
    key: "hash",
    order: "created_at",
    isCatalogue: true,
    old: `created_at < ${OLD} AND NOT EXISTS (SELECT 1 FROM bundle b WHERE b.shared_chunk_hash = shared_chunk.hash)`,
  }),
  files: byKey("files", {
    table: "bundled_file",
    key: "hash",
    order: "created_at",
    isCatalogue: true,
    old: `created_at < ${OLD} AND NOT EXISTS (
       SELECT 1 FROM bundle_file f JOIN bundle b ON b.hash = f.bundle_hash WHERE f.file_hash = bundled_file.hash)`,
  }),
};

/** Deletes, or counts with `dryRun`, rows that ended before `olderThanMs`, and rows that only they referenced. */
export async function cleanHistory(db: Database, options: CleanOptions): Promise<CleanCounts> {
  const counts = Object.fromEntries(CLEAN_KINDS.map((name) => [name, 0])) as CleanCounts;
  if (options.onStaleListener !== undefined) {
    const stale = await staleListeners(db, signalRetention(options).staleMs);
    for (const listener of stale) options.onStaleListener(listener);
  }
  const wanted = CLEAN_KINDS.filter((name) => options.only?.includes(name) ?? true);
  if (options.dryRun) {
    const found = await countDeletable(
      db,
      new Map(wanted.map((name) => [name, KINDS[name].deletable])),
      async (tx) => [
        options.olderThanMs,
        wanted.includes("signals") ? await signalsBound(tx, options.olderThanMs) : null,
        signalRetention(options).staleMs,
      ],
    );
    return { ...counts, ...found };
  }
  for (const name of wanted) await cleanKind(db, name, { options, counts });
  return counts;
}

async function cleanKind(
  db: Database,
  name: CleanKind,
  { options, counts }: { options: CleanOptions; counts: CleanCounts },
): Promise<void> {
  const { begin, isCatalogue = false } = KINDS[name];
  const remove = begin();
  const pace = new BatchPace(options.batch);
  while (options.signal?.aborted !== true) {
    const began = performance.now();
    const { removed, isMore } = await db.transaction(async (tx) => {
      if (isCatalogue) await tx.rows(CATALOGUE_LOCK);
      return remove(tx, { ...options, rows: pace.rows });
    });
    pace.took(performance.now() - began);
    counts[name] += removed;
    if (!isMore) return;
    options.onProgress?.(counts);
  }
}

/** Selects in the order of an index and deletes by key: a batch costs the same, however much is left. */
function byKey(
  name: CleanKind,
  spec: { table: string; key: keyof typeof KEY_TYPES; order: string; old: string; isCatalogue?: boolean },
): Kind {
  const { isCatalogue = false, key, old, order, table } = spec;
  const choose = statement(
    `clean-choose-${name}`,
    `SELECT ${key}::text AS key FROM ${table} WHERE ${old} ORDER BY ${order} LIMIT $2 FOR UPDATE SKIP LOCKED`,
  );
  const remove = statement(
    `clean-remove-${name}`,
    `DELETE FROM ${table} WHERE ${key} = ANY($2::${KEY_TYPES[key]}[]) AND ${old} RETURNING 1`,
  );
  return {
    isCatalogue,
    deletable: { table, key, old },
    begin:
      () =>
      async (tx, { olderThanMs, rows }) => {
        const chosen = await tx.rows<{ key: string }>(choose, [olderThanMs, rows]);
        if (chosen.length === 0) return { removed: 0, isMore: false };
        const removed = await tx.rows(remove, [olderThanMs, chosen.map((row) => row.key)]);
        return { removed: removed.length, isMore: true };
      },
  };
}

function signalRetention({ olderThanMs, staleListenerMs = STALE_LISTENER_MS }: CleanOptions) {
  return { olderThanMs, staleMs: staleListenerMs };
}
