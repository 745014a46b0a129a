/** Versions of a DAG: the manifest and the source of its runs. */
import type { DagManifest } from "@tradewind/sdk/manifest";
import type { Connection } from "../database/database.ts";
import { adhoc } from "../database/statement.ts";
import { Conditions, first, type Listed, list, type Page } from "../page/query.ts";

export interface DagVersionRow {
  readonly id: number;
  readonly dag_id: string;
  readonly number: number;
  readonly bundle_hash: string;
  readonly created_at: Date;
}

export interface DagVersionFilter {
  /** Absent: all DAGs. */
  readonly dagId?: string;
  readonly number?: number;
  readonly bundleHash?: string;
  /** Matches nothing: the filter names an unknown bundle. */
  readonly nothing?: boolean;
}

export const DAG_VERSION_ORDER = {
  id: "v.id",
  version_number: "v.number",
  bundle_version: "v.bundle_hash",
  // All versions come from one DAG folder.
  bundle_name: "NULL::text",
  dag_id: "v.dag_id",
  created_at: "v.created_at",
} as const;

export function listDagVersions(
  connection: Connection,
  filter: DagVersionFilter,
  page: Page,
): Promise<Listed<DagVersionRow>> {
  return list(connection, {
    columns: COLUMNS,
    from: "dag_version v",
    where: conditions(filter),
    order: DAG_VERSION_ORDER,
    tiebreak: "v.id",
    page,
  });
}

export function findDagVersion(
  connection: Connection,
  dagId: string,
  number: number,
): Promise<DagVersionRow | undefined> {
  return first(connection, { columns: COLUMNS, from: "dag_version v", where: conditions({ dagId, number }) });
}

/** The source of one version, or of the current one without a number. */
export function findSource(
  connection: Connection,
  dagId: string,
  number: number | undefined,
): Promise<{ source: string; number: number } | undefined> {
  const where = new Conditions().equals("v.dag_id", dagId).equals("v.number", number);
  const from = number === undefined ? "dag d JOIN dag_version v ON v.id = d.version_id" : "dag_version v";
  return first(connection, { columns: "v.source, v.number", from, where });
}

export interface WholeVersion extends DagVersionRow {
  readonly manifest: DagManifest;
  readonly source: string;
}

/** With manifest and source: the version with this number, the current one, or the one before a number. */
export function findWholeVersion(
  connection: Connection,
  dagId: string,
  which: { readonly number: number } | { readonly before: number } | "current",
): Promise<WholeVersion | undefined> {
  const where = new Conditions().equals("v.dag_id", dagId);
  if (which === "current") where.raw("v.id = (SELECT version_id FROM dag WHERE dag_id = v.dag_id)");
  else if ("number" in which) where.equals("v.number", which.number);
  else {
    const number = where.bind(which.before);
    where.raw(
      `v.number = (SELECT max(number) FROM dag_version WHERE dag_id = v.dag_id AND number < ${number})`,
    );
  }
  return first(connection, { columns: `${COLUMNS}, v.manifest, v.source`, from: "dag_version v", where });
}

/** By version id; the runs of one edit may have several versions. */
export async function readManifests(
  connection: Connection,
  versionIds: readonly number[],
): Promise<ReadonlyMap<number, DagManifest>> {
  const rows = await connection.rows<{ id: number; manifest: DagManifest }>(
    adhoc("SELECT id, manifest FROM dag_version WHERE id = ANY($1)"),
    [[...new Set(versionIds)]],
  );
  return new Map(rows.map((row) => [row.id, row.manifest]));
}

const COLUMNS = "v.id, v.dag_id, v.number, v.bundle_hash, v.created_at";

function conditions(filter: DagVersionFilter): Conditions {
  return new Conditions()
    .equals("v.dag_id", filter.dagId)
    .equals("v.number", filter.number)
    .equals("v.bundle_hash", filter.bundleHash)
    .nothingIf(filter.nothing);
}
