/** Signals in lists: by version, not by position. A page may miss signals that commit late; a listener does not. */
import type { Connection } from "../database/database.ts";
import { adhoc } from "../database/statement.ts";
import { Conditions, type Range } from "../page/query.ts";
import { SIGNAL_COLUMNS, type SignalRow } from "./signals-read.ts";

export interface SignalQuery {
  /** LIKE patterns. */
  readonly namespace?: string | undefined;
  readonly keys?: readonly string[] | undefined;
  readonly sender?: string | undefined;
  readonly version?: Range<number> | undefined;
  readonly time?: Range<Date> | undefined;
  readonly descending?: boolean | undefined;
  readonly limit: number;
}

/** Index: signal_key if namespace and key have no wildcard, else signal_pkey. */
export async function listSignals(connection: Connection, query: SignalQuery): Promise<SignalRow[]> {
  const where = new Conditions();
  signalConditions(where, query);
  where.between("s.id", query.version).between("s.created_at", query.time);
  const order = query.descending ? "DESC" : "ASC";
  return connection.rows<SignalRow>(
    adhoc(
      `SELECT ${SIGNAL_COLUMNS} FROM signal s ${where}
       ORDER BY s.id ${order} LIMIT ${Math.trunc(query.limit)}`,
    ),
    where.values,
  );
}

/** Adds the conditions on the names of a signal `s`. isByKey: the index signal_key finds them. */
export function signalConditions(
  where: Conditions,
  { keys, namespace, sender }: Pick<SignalQuery, "keys" | "namespace" | "sender">,
): { readonly isByKey: boolean } {
  const isOne = namespace !== undefined && isExact(namespace) && !SYSTEM.has(namespace);
  if (namespace !== undefined && namespace !== "%") {
    if (isExact(namespace)) where.equals("s.namespace", plain(namespace));
    else where.raw(`s.namespace LIKE ${where.bind(namespace)}`);
    // Redundant, but required to match the partial index.
    if (isOne) where.raw("s.namespace NOT IN ('task', 'run')");
  }
  const areExact = keys?.every(isExact) === true;
  if (keys !== undefined && !keys.includes("%")) {
    if (areExact) where.oneOf("s.key", keys.map(plain));
    else where.raw(`s.key LIKE ANY(${where.bind(keys)}::text[])`);
  }
  where.equals("s.sender", sender);
  return { isByKey: isOne && areExact };
}

const SYSTEM: ReadonlySet<string> = new Set(["task", "run"]);

function isExact(pattern: string): boolean {
  return !/(?<!\\)(?:\\\\)*[%_]/.test(pattern);
}

function plain(pattern: string): string {
  return pattern.replace(/\\(.)/gs, "$1");
}
