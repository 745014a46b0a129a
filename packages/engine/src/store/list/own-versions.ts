/** The version that an attempt ran with, if an edit has moved its run to another one since. */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import type { RunVersionColumns } from "./dag-runs.ts";

const OWN_VERSIONS = statement(
  "list-own-versions",
  `SELECT a.attempt, v.id AS version_id, v.number AS version_number, v.created_at AS version_created_at, v.bundle_hash
   FROM attempt_version a JOIN dag_version v ON v.id = a.version_id WHERE a.attempt = ANY($1::uuid[])`,
);

/** Rows with the version of their run get that of their attempt. */
export async function withOwnVersions<R extends RunVersionColumns & { readonly attempt: string | null }>(
  connection: Connection,
  rows: readonly R[],
): Promise<R[]> {
  const attempts = rows.flatMap(({ attempt }) => attempt ?? []);
  if (attempts.length === 0) return [...rows];
  const found = await connection.rows<RunVersionColumns & { attempt: string }>(OWN_VERSIONS, [attempts]);
  const byAttempt = new Map(found.map(({ attempt, ...version }) => [attempt, version]));
  return rows.map((row) => ({ ...row, ...byAttempt.get(row.attempt ?? "") }));
}
