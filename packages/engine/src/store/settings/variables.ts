/** Variables: values sealed with the installation's key, which also authenticates the row's key. */
import type { SecretBox } from "../../secret/secret-box.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { Conditions, type Listed, list, type Page } from "../page/query.ts";

export interface Variable {
  readonly key: string;
  readonly value: string;
  readonly description: string | null;
}

/** As the API shows it; the value is null if the installation's key does not open it. */
export interface ShownVariable extends Omit<Variable, "value"> {
  readonly value: string | null;
}

export const VARIABLE_ORDER = {
  id: "v.key",
  key: "v.key",
  description: "v.description",
  // Values are sealed, so they have no order; the other columns are the same for all variables.
  _val: "NULL::text",
  is_encrypted: "NULL::text",
  team_name: "NULL::text",
} as const;

export async function listVariables(
  connection: Connection,
  box: SecretBox,
  query: { key?: string; pattern?: string; prefix?: string; page: Page },
): Promise<Listed<ShownVariable>> {
  const { rows, total } = await list<Row>(connection, {
    columns: "v.key, v.sealed, v.description",
    from: "variable v",
    where: new Conditions()
      .equals("v.key", query.key)
      .matches("v.key", query.pattern)
      .startsWith("v.key", query.prefix),
    order: VARIABLE_ORDER,
    tiebreak: "v.key",
    page: query.page,
  });
  return { rows: rows.map((row) => shown(box, row)), total };
}

/** @throws EngineError SECRET_UNREADABLE if the installation's key does not open its value. */
export async function findVariable(
  connection: Connection,
  box: SecretBox,
  key: string,
): Promise<Variable | undefined> {
  const row = await connection.one<Row>(FIND_VARIABLE, [key]);
  return row === undefined ? undefined : opened(box, row);
}

/** All variables, by key. @throws EngineError SECRET_UNREADABLE if the installation's key does not open one. */
export async function openVariables(connection: Connection, box: SecretBox): Promise<Variable[]> {
  return (await connection.rows<Row>(ALL_VARIABLES)).map((row) => opened(box, row));
}

/** The stored variable, locked until the transaction ends: a read followed by a write cannot undo another change. */
export async function lockVariable(
  tx: Connection,
  box: SecretBox,
  key: string,
): Promise<ShownVariable | undefined> {
  const row = await tx.one<Row>(LOCK_VARIABLE, [key]);
  return row === undefined ? undefined : shown(box, row);
}

/** Returns whether it was created; false: the key exists. */
export async function createVariable(tx: Connection, box: SecretBox, variable: Variable): Promise<boolean> {
  const row = await tx.one(INSERT_VARIABLE, [variable.key, sealed(box, variable), variable.description]);
  return row !== undefined;
}

export async function updateVariable(tx: Connection, box: SecretBox, variable: Variable): Promise<boolean> {
  const row = await tx.one(UPDATE_VARIABLE, [variable.key, sealed(box, variable), variable.description]);
  return row !== undefined;
}

export async function deleteVariable(tx: Connection, key: string): Promise<boolean> {
  return (await tx.one(DELETE_VARIABLE, [key])) !== undefined;
}

interface Row {
  readonly key: string;
  readonly sealed: Buffer;
  readonly description: string | null;
}

function sealed(box: SecretBox, { key, value }: Variable) {
  return box.seal(value, context(key));
}

function opened(box: SecretBox, row: Row): Variable {
  const value = box.open(row.sealed, context(row.key), `The value of variable "${row.key}"`);
  return { key: row.key, value, description: row.description };
}

/** A value sealed with a lost key must not hide the others. */
function shown(box: SecretBox, row: Row): ShownVariable {
  try {
    return opened(box, row);
  } catch {
    return { key: row.key, value: null, description: row.description };
  }
}

function context(key: string): string {
  return `variable/${key}/value`;
}

const FIND_VARIABLE = statement(
  "variable-find",
  "SELECT key, sealed, description FROM variable WHERE key = $1",
);

const ALL_VARIABLES = statement("variable-all", "SELECT key, sealed, description FROM variable ORDER BY key");

const LOCK_VARIABLE = statement(
  "variable-lock",
  "SELECT key, sealed, description FROM variable WHERE key = $1 FOR UPDATE",
);

const INSERT_VARIABLE = statement(
  "variable-insert",
  "INSERT INTO variable (key, sealed, description) VALUES ($1, $2, $3) ON CONFLICT (key) DO NOTHING RETURNING key",
);

const UPDATE_VARIABLE = statement(
  "variable-update",
  "UPDATE variable SET sealed = $2, description = $3, updated_at = now() WHERE key = $1 RETURNING key",
);

const DELETE_VARIABLE = statement("variable-delete", "DELETE FROM variable WHERE key = $1 RETURNING key");
