/**
 * The state of a bridge to a signal service: the positions of import and export, and the process that holds it. Every
 * write requires the holder: a process that lost the bridge changes nothing.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { Connection, Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { type SignalDraft, sendSignals } from "./signals.ts";
import { type LogPosition, laterPosition, logEnd } from "./signals-position.ts";
import { type LogEndRow, SIGNAL_COLUMNS, type SignalRow } from "./signals-read.ts";

export interface BridgeHold {
  readonly service: string;
  readonly holder: string;
}

export interface HeldBridge {
  readonly place: Json;
  readonly client: string;
  readonly published: LogPosition;
}

/** A signal with its version in the service. */
export interface PublishedSignal {
  readonly namespace: string;
  readonly key: string;
  readonly version: number;
}

const FIND = statement("bridge-find", "SELECT 1 FROM signal_bridge WHERE service = $1");

/** Transactions that are open now may hold signals of tasks at positions that are not visible yet. */
const OPEN = statement(
  "bridge-open",
  `INSERT INTO signal_bridge (service, place, tx, signal_id)
   VALUES ($1, $2, pg_snapshot_xmin(pg_current_snapshot()), 0) ON CONFLICT DO NOTHING`,
);

const CLAIM = statement(
  "bridge-claim",
  `UPDATE signal_bridge SET holder = $2, lease_until = now() + $3::float8 * interval '1 millisecond'
   WHERE service = $1 AND (holder IS NULL OR holder = $2 OR lease_until < now())
   RETURNING place, client, tx, signal_id`,
);

const RELEASE = statement(
  "bridge-release",
  "UPDATE signal_bridge SET holder = NULL, lease_until = NULL WHERE service = $1 AND holder = $2",
);

const MOVE_PLACE = statement(
  "bridge-move-place",
  "UPDATE signal_bridge SET place = $3 WHERE service = $1 AND holder = $2 RETURNING 1",
);

const MOVE_PUBLISHED = statement(
  "bridge-move-published",
  "UPDATE signal_bridge SET tx = $3, signal_id = $4 WHERE service = $1 AND holder = $2 RETURNING 1",
);

const ADD_PUBLISHED = statement(
  "bridge-add-published",
  `INSERT INTO signal_published (service, namespace, key, version)
   SELECT $1, * FROM unnest($2::text[], $3::text[], $4::bigint[]) ON CONFLICT DO NOTHING`,
);

const TAKE_PUBLISHED = statement(
  "bridge-take-published",
  `DELETE FROM signal_published p USING unnest($2::text[], $3::text[], $4::bigint[]) AS g(namespace, key, version)
   WHERE p.service = $1 AND p.namespace = g.namespace AND p.key = g.key AND p.version = g.version
   RETURNING p.namespace, p.key, p.version`,
);

/** Index: signal_position. Returns at least one row, for the end of the log. */
const SENT_BY_TASKS = statement(
  "bridge-sent-by-tasks",
  `SELECT b.tx AS end_tx, b.id AS end_id, s.* FROM ${logEnd()} AS b
   LEFT JOIN LATERAL (
     SELECT ${SIGNAL_COLUMNS} FROM signal s
     WHERE (s.tx, s.id) > ($1::xid8, $2) AND (s.tx, s.id) <= (b.tx, b.id) AND s.sender LIKE 'task:%' AND s.namespace <> ALL($3::text[])
     ORDER BY s.tx, s.id LIMIT $4
   ) AS s ON true
   ORDER BY s.tx, s.id`,
);

/** Index: signal_key. */
const HAS = statement(
  "bridge-has",
  "SELECT 1 FROM signal WHERE namespace = $1 AND namespace NOT IN ('task', 'run') AND key = $2 LIMIT 1",
);

/** Creates the bridge's row if missing; `place`: the current position of the service. */
export async function openBridge(db: Connection, service: string, place: () => Promise<Json>): Promise<void> {
  if ((await db.rows(FIND, [service])).length > 0) return;
  await db.rows(OPEN, [service, JSON.stringify(await place())]);
}

/** Also extends the lease. null: another process holds it. */
export async function claimBridge(
  db: Connection,
  { holder, service }: BridgeHold,
  ttlMs: number,
): Promise<HeldBridge | null> {
  const row = await db.one<{ place: Json; client: string; tx: string; signal_id: number }>(CLAIM, [
    service,
    holder,
    ttlMs,
  ]);
  if (!row) return null;
  return { place: row.place, client: row.client, published: { tx: row.tx, id: row.signal_id } };
}

export async function releaseBridge(db: Connection, { holder, service }: BridgeHold): Promise<void> {
  await db.rows(RELEASE, [service, holder]);
}

/** True if the log has a signal with this key. */
export async function hasSignal(db: Connection, namespace: string, key: string): Promise<boolean> {
  return (await db.rows(HAS, [namespace, key])).length > 0;
}

/** The signals sent by tasks since, except in these namespaces; `position`: the end of the range read. */
export async function sentByTasks(
  db: Connection,
  query: { readonly after: LogPosition; readonly except: readonly string[]; readonly limit: number },
): Promise<{ readonly rows: SignalRow[]; readonly position: LogPosition }> {
  const { after, except, limit } = query;
  const all = await db.rows<SignalRow & Omit<LogEndRow, "held">>(SENT_BY_TASKS, [
    after.tx,
    after.id,
    except,
    limit,
  ]);
  const rows = all.filter(({ id }) => id !== null);
  const last = rows.at(-1);
  const position =
    rows.length === limit && last ? last : laterPosition(after, { tx: all[0]!.end_tx, id: all[0]!.end_id });
  return { rows, position };
}

/** Stores the service's versions of exported signals, and the position. false: another process holds the bridge. */
export async function storePublished(
  db: Database,
  { holder, service }: BridgeHold,
  { position, sent }: { readonly sent: readonly PublishedSignal[]; readonly position: LogPosition },
): Promise<boolean> {
  return db.transaction(async (tx) => {
    const isHeld = (await tx.rows(MOVE_PUBLISHED, [service, holder, position.tx, position.id])).length > 0;
    if (isHeld && sent.length > 0) await tx.rows(ADD_PUBLISHED, [service, ...columns(sent)]);
    return isHeld;
  });
}

/**
 * Stores imported signals and the service's position together. Signals that were exported from the log are in it already
 * and are skipped. false: another process holds the bridge.
 */
export async function storeImported(
  db: Database,
  { holder, service }: BridgeHold,
  batch: { readonly signals: readonly (SignalDraft & PublishedSignal)[]; readonly place: Json },
): Promise<boolean> {
  return db.transaction(async (tx) => {
    // First, because it locks the row against other processes.
    const isHeld = (await tx.rows(MOVE_PLACE, [service, holder, JSON.stringify(batch.place)])).length > 0;
    if (!isHeld || batch.signals.length === 0) return isHeld;
    const own = new Set(
      (await tx.rows<PublishedSignal>(TAKE_PUBLISHED, [service, ...columns(batch.signals)])).map(nameOf),
    );
    const foreign = batch.signals.filter((signal) => !own.has(nameOf(signal)));
    await sendSignals(
      tx,
      foreign.map(({ key, namespace, sender, value }) => ({ key, namespace, sender, value })),
    );
    return true;
  });
}

function columns(signals: readonly PublishedSignal[]): unknown[] {
  return [
    signals.map(({ namespace }) => namespace),
    signals.map(({ key }) => key),
    signals.map(({ version }) => version),
  ];
}

function nameOf({ key, namespace, version }: PublishedSignal): string {
  return JSON.stringify([namespace, key, version]);
}
