/**
 * What retention would delete, counted without deleting it. What a kind refers to may be about to go itself, with a kind
 * before it: a version is not needed by runs that go. So it is one statement that does in thought what would be done.
 * Each kind is chosen by its own condition, and from then on its table is hidden behind what would be left of it, under
 * the same name: the conditions of later kinds ask that. What nobody asks for is not computed.
 */
import { adhoc, type Connection, type Database, statement } from "../database/database.ts";

export interface Deletable {
  readonly table: string;
  /** The alias that `old` knows it by; its name unless told. */
  readonly alias?: string;
  /** The column that tells its rows apart. */
  readonly key: string;
  readonly old: string;
  /** Subqueries that `old` asks by name. */
  readonly asks?: readonly string[];
  /** Tables whose rows go with it, by the column `dag_run_id`, and that later kinds ask. */
  readonly takes?: readonly string[];
}

/**
 * How many will go is guessed badly: it depends on so much. Compared row by row, with a million on both sides, it would
 * never end; hashed it is fine whatever comes. For this transaction only.
 */
const HASHED = statement(
  "clean-count-plan",
  "SELECT set_config('enable_nestloop', 'off', true), set_config('jit', 'off', true)",
);

/** $1: the age; $2: the bound of signals; $3: when a listener is stale. Named here for those that no condition asks for. */
const GIVEN = "given AS (SELECT $1::float8, $2::timestamptz, $3::float8)";

/** Those of `kinds` that would go, if all of them are cleaned, in this order. */
export async function countDeletable<Name extends string>(
  db: Database,
  kinds: ReadonlyMap<Name, Deletable>,
  values: (tx: Connection) => Promise<readonly [number, string | null, number]>,
): Promise<Partial<Record<Name, number>>> {
  if (kinds.size === 0) return {};
  const steps = [...kinds].flatMap(([name, kind]) => [chosen(name, kind), ...left(name, kind)]);
  const counts = [...kinds.keys()].map((name) => `(SELECT count(*) FROM gone_${name}) AS ${name}`);
  const text = `WITH ${[GIVEN, ...steps].join(",\n")}\nSELECT ${counts.join(", ")}`;
  return db.transaction(async (tx) => {
    const given = await values(tx);
    await tx.rows(HASHED);
    return (await tx.one<Record<Name, number>>(adhoc(text), given)) ?? {};
  });
}

function chosen(name: string, { alias, asks = [], key, old, table }: Deletable): string {
  const rows = `SELECT ${key} AS key FROM ${table} ${alias ?? ""} WHERE ${old}`;
  return [...asks, `gone_${name} AS MATERIALIZED (${rows})`].join(",\n");
}

function left(name: string, { key, table, takes = [] }: Deletable): string[] {
  const without = (from: string, column: string) => `${from} AS NOT MATERIALIZED (
    SELECT t.* FROM ${from} t WHERE NOT EXISTS (SELECT 1 FROM gone_${name} g WHERE g.key = t.${column}))`;
  return [without(table, key), ...takes.map((from) => without(from, "dag_run_id"))];
}
