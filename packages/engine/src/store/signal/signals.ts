/**
 * Writing the signal log. Signals are stored in the given order; the version of a signal is its id. Inside a transaction,
 * call it once, with all signals, and as late as possible: until the commit it blocks other writers of the same keys, and
 * readers of the log wait for every transaction that has written.
 */
import type { Json } from "@tradewind/sdk/manifest";
import { type Call, type Connection, call, Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";

export interface SignalDraft {
  readonly namespace: string;
  readonly key: string;
  readonly value: Json;
  readonly sender: string;
  /** With `sequence`: stored once, however often it is sent. */
  readonly client?: string | undefined;
  readonly sequence?: number | undefined;
}

export interface StoredSignal {
  readonly id: number;
  readonly tx: string;
  readonly createdAt: Date;
  readonly namespace: string;
  readonly key: string;
  /** Already stored: the same client has sent it under the same number. */
  readonly isDuplicate: boolean;
}

interface SentRow {
  readonly id: number;
  readonly tx: string;
  readonly created_at: Date;
  readonly client: string | null;
  readonly client_seq: number | null;
}

/** Locks: the buckets of the keys, in their order, until the transaction ends. */
const LOCK = statement("signal-lock", "SELECT tw_lock_signals($1, $2)");

/** Index: signal_sent. Ids are assigned in the order of the list, which is the order of the signals. */
const INSERT = statement(
  "signal-insert",
  `INSERT INTO signal (namespace, key, value, sender, client, client_seq)
   SELECT g.namespace, g.key, g.value::json, g.sender, g.client, g.seq
   FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[])
     WITH ORDINALITY AS g(namespace, key, value, sender, client, seq, place)
   ORDER BY g.place
   ON CONFLICT (client, client_seq) WHERE client IS NOT NULL DO NOTHING
   RETURNING id, tx, created_at, client, client_seq`,
);

/** Index: signal_sent. */
const FIND_SENT = statement(
  "signal-find-sent",
  `SELECT s.id, s.tx, s.created_at, s.client, s.client_seq, s.namespace, s.key
   FROM unnest($1::text[], $2::bigint[]) AS g(client, seq)
   JOIN signal s ON s.client = g.client AND s.client_seq = g.seq`,
);

/**
 * Stores the signals and returns one entry for each, in order. Called on a database, it is a separate transaction in one
 * round trip (two, if some were sent before). `client` numbers them from `sequence` on.
 */
export async function sendSignals(
  db: Database | Connection,
  signals: readonly SignalDraft[],
  options: { readonly client?: { readonly id: string; readonly sequence: number } } = {},
): Promise<StoredSignal[]> {
  if (signals.length === 0) return [];
  const { client } = options;
  const drafts =
    client === undefined
      ? signals
      : signals.map((each, at) => ({ ...each, client: client.id, sequence: client.sequence + at }));
  return matched(db, drafts, await store(db, sendCalls(drafts)));
}

async function store(db: Database | Connection, [lock, insert]: [Call, Call]): Promise<SentRow[]> {
  if (db instanceof Database) return (await db.pipeline([lock, insert]))[1] as SentRow[];
  await db.rows(lock.statement, lock.values);
  return db.rows<SentRow>(insert.statement, insert.values);
}

/** The same as two calls, for a transaction that is sent as a pipeline. */
export function sendCalls(signals: readonly SignalDraft[]): [lock: Call, insert: Call] {
  const namespaces = signals.map((each) => each.namespace);
  const keys = signals.map((each) => each.key);
  return [
    call(LOCK, namespaces, keys),
    call(
      INSERT,
      namespaces,
      keys,
      signals.map((each) => JSON.stringify(each.value)),
      signals.map((each) => each.sender),
      signals.map((each) => each.client ?? null),
      signals.map((each) => each.sequence ?? null),
    ),
  ];
}

async function matched(
  db: Database | Connection,
  drafts: readonly SignalDraft[],
  rows: readonly SentRow[],
): Promise<StoredSignal[]> {
  const byId = rows.toSorted((a, b) => a.id - b.id);
  const unnumbered = byId.filter(({ client }) => client === null).values();
  const numbered = new Map(byId.map((row) => [`${row.client} ${row.client_seq}`, row]));
  const found: (StoredSignal | undefined)[] = drafts.map((draft) => {
    const { client, key, namespace, sequence } = draft;
    const name = `${client} ${sequence}`;
    const row = client === undefined ? unnumbered.next().value : numbered.get(name);
    if (row === undefined) return undefined;
    // Twice in one list: the second is a duplicate, too.
    if (client !== undefined) numbered.delete(name);
    return { id: row.id, tx: row.tx, createdAt: row.created_at, namespace, key, isDuplicate: false };
  });
  const missing = drafts.filter((_, at) => found[at] === undefined);
  if (missing.length > 0) {
    const before = await findSent(db, missing);
    drafts.forEach(({ client, sequence }, at) => {
      found[at] ??= before.get(`${client} ${sequence}`);
    });
  }
  // A duplicate whose original was just deleted by retention: sent as new.
  return Promise.all(found.map(async (each, at) => each ?? (await sendSignals(db, [drafts[at]!]))[0]!));
}

/** A separate statement: it must see the rows that the INSERT waited for. */
async function findSent(db: Connection, drafts: readonly SignalDraft[]): Promise<Map<string, StoredSignal>> {
  const rows = await db.rows<SentRow & { namespace: string; key: string }>(FIND_SENT, [
    drafts.map(({ client }) => client),
    drafts.map(({ sequence }) => sequence),
  ]);
  return new Map(
    rows.map(({ client, client_seq, created_at, id, key, namespace, tx }) => [
      `${client} ${client_seq}`,
      { id, tx, createdAt: created_at, namespace, key, isDuplicate: true },
    ]),
  );
}
