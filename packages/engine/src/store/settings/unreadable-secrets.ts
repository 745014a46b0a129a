/**
 * Stored secrets that a key ring does not open. Decided by the id of the sealing key, by which the database groups: only
 * a few bytes per key are transferred, and no secret.
 */
import { HEADER_BYTES, type SecretBox } from "../../secret/secret-box.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

export interface UnreadableSecrets {
  readonly variables: number;
  readonly connections: number;
  /** The name of one of them, for messages. */
  readonly example: string;
}

/** null: all secrets can be opened. */
export async function findUnreadable(
  connection: Connection,
  box: SecretBox,
): Promise<UnreadableSecrets | null> {
  const groups = await connection.rows<Group>(BY_KEY);
  const [first, ...others] = groups.filter(({ header }) => !box.holdsKeyOf(header));
  if (first === undefined) return null;
  const count = (kind: Group["kind"]) =>
    [first, ...others].reduce((sum, group) => sum + (group.kind === kind ? group.count : 0), 0);
  return {
    variables: count("variable"),
    connections: count("connection"),
    example: `${first.kind} "${first.name}"`,
  };
}

interface Group {
  readonly kind: "variable" | "connection";
  readonly header: Buffer;
  readonly count: number;
  readonly name: string;
}

const BY_KEY = statement(
  "unreadable-by-key",
  `SELECT kind, header, count(*)::int AS count, min(name) AS name
   FROM (SELECT 'variable' AS kind, substring(sealed FROM 1 FOR ${HEADER_BYTES}) AS header, key AS name FROM variable
         UNION ALL
         SELECT 'connection', substring(sealed FROM 1 FOR ${HEADER_BYTES}), conn_id FROM connection
         WHERE sealed IS NOT NULL) AS secrets
   GROUP BY kind, header ORDER BY kind DESC, name`,
);
