/**
 * Counts what retention would delete, without deleting it. A kind may be referenced only by rows of an earlier kind that
 * would be deleted, too: a version is not needed by deleted runs. So one statement simulates the deletion. Each kind is
 * selected by its own condition; from then on a CTE with the remaining rows hides its table under the same name, for the
 * conditions of later kinds. Kinds that are not requested are not computed.
 */
import { adhoc, type Connection, type Database, statement } from "../database/database.ts";

export interface Deletable {
  readonly table: string;
  /** The alias in `old`; default: its name. */
  readonly alias?: string;
  /** Its key column. */
  readonly key: string;
  readonly old: string;
  /** Subqueries that `old` uses by name. */
  readonly subqueries?: readonly string[];
  /** Tables whose rows are deleted with it, by the column `dag_run_id`, and that later kinds use. */
  readonly takes?: readonly string[];
}

/**
 * The planner cannot estimate how many rows would be deleted. A nested loop over a million rows on both sides would never
 * end; a hash join always works. For this transaction only.
 */
const HASHED = statement(
  "clean-count-plan",
  "SELECT set_config('enable_nestloop', 'off', true), set_config('jit', 'off', true)",
);

/** $1: the age; $2: the bound of signals; $3: when a listener is stale. Declares the types of unused parameters. */
const GIVEN = "given AS (SELECT $1::float8, $2::timestamptz, $3::float8)";

/** The number of rows of `kinds` that would be deleted, if all are cleaned in this order. */
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

function chosen(name: string, { alias, subqueries: asks = [], key, old, table }: Deletable): string {
  const rows = `SELECT ${key} AS key FROM ${table} ${alias ?? ""} WHERE ${old}`;
  return [...asks, `gone_${name} AS MATERIALIZED (${rows})`].join(",\n");
}

function left(name: string, { key, table, takes = [] }: Deletable): string[] {
  const without = (from: string, column: string) => `${from} AS NOT MATERIALIZED (
    SELECT t.* FROM ${from} t WHERE NOT EXISTS (SELECT 1 FROM gone_${name} g WHERE g.key = t.${column}))`;
  return [without(table, key), ...takes.map((from) => without(from, "dag_run_id"))];
}
