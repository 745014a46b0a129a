/**
 * Connections. Password and extra are sealed together and are readable for tasks only (`openConnection`): the rows of the
 * API have no field that could carry a secret.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { ConnectionFacts } from "@tradewind/sdk/program";
import type { SecretBox } from "../../secret/secret-box.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { Conditions, type Listed, list, type Page } from "../page/query.ts";

export interface ConnectionRow {
  readonly conn_id: string;
  readonly conn_type: string;
  readonly description: string | null;
  readonly host: string | null;
  readonly port: number | null;
  readonly login: string | null;
  readonly schema: string | null;
  readonly has_secrets: boolean;
}

/** Input of writes. An undefined secret keeps its value on update, null removes it. */
export interface ConnectionValues {
  readonly connId: string;
  readonly connType: string;
  readonly description: string | null;
  readonly host: string | null;
  readonly port: number | null;
  readonly login: string | null;
  readonly schema: string | null;
  readonly password?: string | null;
  readonly extra?: string | null;
}

export const CONNECTION_ORDER = {
  id: "c.conn_id",
  connection_id: "c.conn_id",
  conn_id: "c.conn_id",
  conn_type: "c.conn_type",
  description: "c.description",
  host: "c.host",
  port: "c.port",
  // Connections have no team; the column exists in Airflow's API.
  team_name: "NULL::text",
} as const;

export function listConnections(
  connection: Connection,
  filter: { connId?: string; pattern?: string; prefix?: string },
  page: Page,
): Promise<Listed<ConnectionRow>> {
  return list(connection, {
    columns: COLUMNS,
    from: "connection c",
    where: new Conditions()
      .equals("c.conn_id", filter.connId)
      .matches("c.conn_id", filter.pattern)
      .startsWith("c.conn_id", filter.prefix),
    order: CONNECTION_ORDER,
    tiebreak: "c.conn_id",
    page,
  });
}

export async function findConnection(
  connection: Connection,
  connId: string,
): Promise<ConnectionRow | undefined> {
  return (await listConnections(connection, { connId }, { limit: 1, offset: 0 })).rows[0];
}

/** Including its secrets, for a running task. */
export async function openConnection(
  connection: Connection,
  box: SecretBox,
  connId: string,
): Promise<ConnectionFacts | undefined> {
  const row = await connection.one<ConnectionRow & { sealed: Buffer | null }>(FIND_SEALED, [connId]);
  if (row === undefined) return undefined;
  const secrets = unseal(box, connId, row.sealed);
  return {
    id: row.conn_id,
    type: row.conn_type,
    host: row.host,
    port: row.port,
    login: row.login,
    password: secrets.password,
    schema: row.schema,
    extra: parsedExtra(secrets.extra),
  };
}

/** All connections with their secrets, by id. @throws EngineError SECRET_UNREADABLE if the key does not open one. */
export async function openConnections(
  connection: Connection,
  box: SecretBox,
): Promise<(ConnectionRow & Secrets)[]> {
  const rows = await connection.rows<ConnectionRow & { sealed: Buffer | null }>(ALL_CONNECTIONS);
  return rows.map((row) => ({ ...row, ...unseal(box, row.conn_id, row.sealed) }));
}

/**
 * The whole connection, locked until the end of the transaction: a read followed by a write cannot undo another change.
 * Secrets that the installation's key does not open are undefined.
 */
export async function lockConnection(
  tx: Connection,
  box: SecretBox,
  connId: string,
): Promise<(ConnectionRow & Partial<Secrets>) | undefined> {
  const row = await tx.one<ConnectionRow & { sealed: Buffer | null }>(LOCK_CONNECTION, [connId]);
  if (row === undefined) return undefined;
  try {
    return { ...row, ...unseal(box, connId, row.sealed) };
  } catch {
    return row;
  }
}

/** Returns whether it was created; false: the id exists. */
export async function createConnection(
  tx: Connection,
  box: SecretBox,
  values: ConnectionValues,
): Promise<boolean> {
  const secrets = { password: values.password ?? null, extra: values.extra ?? null };
  return (
    (await tx.one(INSERT_CONNECTION, columnValues(values, seal(box, values.connId, secrets)))) !== undefined
  );
}

/** Locks the row before it merges the secrets, so that concurrent updates do not undo each other. */
export async function updateConnection(
  tx: Connection,
  box: SecretBox,
  values: ConnectionValues,
): Promise<boolean> {
  const row = await tx.one<{ sealed: Buffer | null }>(LOCK_SEALED, [values.connId]);
  if (row === undefined) return false;
  const former =
    values.password === undefined || values.extra === undefined
      ? unseal(box, values.connId, row.sealed)
      : NONE;
  const secrets = {
    password: values.password === undefined ? former.password : values.password,
    extra: values.extra === undefined ? former.extra : values.extra,
  };
  await tx.rows(UPDATE_CONNECTION, columnValues(values, seal(box, values.connId, secrets)));
  return true;
}

export async function deleteConnection(tx: Connection, connId: string): Promise<boolean> {
  return (await tx.one(DELETE_CONNECTION, [connId])) !== undefined;
}

export interface Secrets {
  readonly password: string | null;
  readonly extra: string | null;
}

const NONE: Secrets = { password: null, extra: null };

function seal(box: SecretBox, connId: string, secrets: Secrets) {
  if (secrets.password === null && secrets.extra === null) return null;
  return box.seal(JSON.stringify(secrets), context(connId));
}

function unseal(box: SecretBox, connId: string, sealed: Buffer | null): Secrets {
  if (sealed === null) return NONE;
  const whose = `The secret part of connection "${connId}" (password, extra)`;
  return JSON.parse(box.open(sealed, context(connId), whose)) as Secrets;
}

function context(connId: string): string {
  return `connection/${connId}/secrets`;
}

/** Extra is the text of an object; other text, stored by other means, stays a string. */
function parsedExtra(extra: string | null): Json {
  if (extra === null || extra === "") return null;
  try {
    return JSON.parse(extra) as Json;
  } catch {
    return extra;
  }
}

function columnValues(values: ConnectionValues, sealed: unknown): unknown[] {
  const { connId, connType, description, host, port, login, schema } = values;
  return [connId, connType, description, host, port, login, schema, sealed];
}

const COLUMNS =
  "c.conn_id, c.conn_type, c.description, c.host, c.port, c.login, c.schema, c.sealed IS NOT NULL AS has_secrets";

const FIND_SEALED = statement("connection-find-sealed", "SELECT * FROM connection WHERE conn_id = $1");

const ALL_CONNECTIONS = statement("connection-all", "SELECT * FROM connection ORDER BY conn_id");

const LOCK_CONNECTION = statement(
  "connection-lock",
  "SELECT * FROM connection WHERE conn_id = $1 FOR UPDATE",
);

const LOCK_SEALED = statement(
  "connection-lock-sealed",
  "SELECT sealed FROM connection WHERE conn_id = $1 FOR UPDATE",
);

const INSERT_CONNECTION = statement(
  "connection-insert",
  `INSERT INTO connection (conn_id, conn_type, description, host, port, login, schema, sealed)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (conn_id) DO NOTHING RETURNING conn_id`,
);

const UPDATE_CONNECTION = statement(
  "connection-update",
  `UPDATE connection SET conn_type = $2, description = $3, host = $4, port = $5, login = $6, schema = $7, sealed = $8,
     updated_at = now() WHERE conn_id = $1`,
);

const DELETE_CONNECTION = statement(
  "connection-delete",
  "DELETE FROM connection WHERE conn_id = $1 RETURNING conn_id",
);
