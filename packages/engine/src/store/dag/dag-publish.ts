/**
 * Publishing DAG files: the only place that creates versions.
 *
 * The bundle's hash alone decides whether the code of a DAG's file has changed and a new version is created. Several
 * DAG processors may publish concurrently: an advisory lock serializes them, so that the second finds the rows of the
 * first and changes nothing. The rows of `dag` are locked in the order of their ids, because schedulers plan runs on
 * them at the same time. A file is published in one transaction: a crash leaves its DAGs unchanged.
 */
import type { DagManifest } from "@tradewind/sdk/manifest";
import type { PlannedRun, Planner, Scheduling } from "../../model/calendar/planner.ts";
import { setAssets } from "../asset/asset-publish.ts";
import type { Connection, Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { setScheduleTriggers } from "../plan/schedule-triggers.ts";
import { forgetTimetables, queryTimetables } from "../plan/timetable-plans.ts";
import { dagLimitKey, limitKey } from "../pool/limit-key.ts";
import { setSignalSchedules } from "../signal/signal-schedules-publish.ts";
import { addBundles, type NamedBundle } from "./bundles.ts";
import { CATALOGUE_LOCK, CLEAR_ERRORS, LOCK_DAGS, MARK_STALE, NOTIFY } from "./dag-catalogue.ts";

/** A bundled DAG file and its DAGs. */
export interface FilePublication {
  readonly file: string;
  readonly bundle: NamedBundle;
  readonly source: string;
  readonly manifests: readonly DagManifest[];
}

export interface PublishOptions {
  readonly isPausedAtCreation: boolean;
  readonly plan: Planner;
}

export interface FileOutcome {
  readonly file: string;
  /** Its DAGs that are new, have a new version or were stale. */
  readonly changed: readonly string[];
  /** Set when nothing of the file was stored: another file already declares a DAG with this id. */
  readonly taken: { readonly dagId: string; readonly by: string } | null;
}

/** A separate statement after LOCK_DAGS: it must see the commits that the lock waited for. */
const READ_DAGS = statement(
  "catalogue-read-dags",
  `SELECT d.dag_id, d.file, d.is_stale, v.number, v.bundle_hash, v.manifest - 'tasks' - 'groups' AS manifest
   FROM dag d LEFT JOIN dag_version v ON v.id = d.version_id WHERE d.dag_id = ANY($1::text[])`,
);

/** Reads one row per DAG by the unique index on (dag, logical date), however long its history. */
const LAST_RUNS = statement(
  "catalogue-last-runs",
  `SELECT u.dag AS dag_id, r.logical_date, r.interval_start, r.interval_end, r.run_after
   FROM unnest($1::text[]) AS u(dag) CROSS JOIN LATERAL (
     (SELECT logical_date, interval_start, interval_end, run_after FROM dag_run
      WHERE dag_id = u.dag AND run_type = 'scheduled' AND logical_date IS NOT NULL
      ORDER BY logical_date DESC LIMIT 1)
     UNION ALL
     (SELECT logical_date, interval_start, interval_end, run_after FROM dag_run
      WHERE dag_id = u.dag AND run_type = 'scheduled' AND logical_date IS NULL ORDER BY run_after DESC LIMIT 1)
     LIMIT 1) r`,
);

const NOW = statement("catalogue-now", "SELECT extract(epoch FROM now()) * 1000 AS now");

const ADD_DAGS = statement(
  "catalogue-add-dags",
  `INSERT INTO dag (dag_id, file, is_paused)
   SELECT u.dag, u.file, $3 FROM unnest($1::text[], $2::text[]) AS u(dag, file) ORDER BY u.dag`,
);

const ADD_VERSIONS = statement(
  "catalogue-add-versions",
  `INSERT INTO dag_version (dag_id, number, bundle_hash, manifest, source)
   SELECT * FROM unnest($1::text[], $2::integer[], $3::text[], $4::jsonb[], $5::text[])
   RETURNING id, dag_id`,
);

const UPDATE_DAGS = statement(
  "catalogue-update-dags",
  `UPDATE dag d SET file = u.file, is_stale = false, last_parsed_at = now(),
     version_id = coalesce(u.version, d.version_id), is_continuous = u.continuous,
     next_logical_date   = CASE WHEN u.plan THEN to_timestamp(u.logical / 1000) ELSE d.next_logical_date END,
     next_interval_start = CASE WHEN u.plan THEN to_timestamp(u.istart / 1000)  ELSE d.next_interval_start END,
     next_interval_end   = CASE WHEN u.plan THEN to_timestamp(u.iend / 1000)    ELSE d.next_interval_end END,
     next_run_after      = CASE WHEN u.plan THEN to_timestamp(u.after / 1000)   ELSE d.next_run_after END
   FROM unnest($1::text[], $2::text[], $3::bigint[], $4::boolean[], $5::float8[], $6::float8[], $7::float8[],
               $8::float8[], $9::boolean[]) AS u(dag, file, version, plan, logical, istart, iend, after, continuous)
   WHERE d.dag_id = u.dag`,
);

const SET_LIMITS = statement(
  "catalogue-set-limits",
  `INSERT INTO pool (name, slots) SELECT * FROM unnest($1::text[], $2::integer[]) AS u(name, slots) ORDER BY name
   ON CONFLICT (name) DO UPDATE SET slots = excluded.slots WHERE pool.slots <> excluded.slots`,
);

/** Stores these files, all or none; the outcomes are in the order of the files. */
export function publishFiles(
  db: Database,
  files: readonly FilePublication[],
  options: PublishOptions,
): Promise<FileOutcome[]> {
  return db.transaction(async (tx) => {
    await tx.rows(CATALOGUE_LOCK);
    const known = await lockDags(tx, files);
    const taken = findTaken(files, known);
    const accepted = files.filter(({ file }) => !taken.has(file));
    const dags = accepted.flatMap((publication) =>
      publication.manifests.map((manifest) => dagChange(publication, manifest, known.get(manifest.dagId))),
    );
    const stale = await tx.rows<{ dag_id: string }>(MARK_STALE, [
      accepted.map(({ file }) => file),
      dags.map(({ dagId }) => dagId),
    ]);
    await writeDags(tx, dags, options);
    const cleared = await tx.rows(CLEAR_ERRORS, [accepted.map(({ file }) => file)]);
    if (stale.length > 0 || cleared.length > 0 || dags.some((dag) => dag.isChanged)) await tx.rows(NOTIFY);
    return files.map(({ file }) => ({
      file,
      changed: dags.filter((dag) => dag.file === file && dag.isChanged).map(({ dagId }) => dagId),
      taken: taken.get(file) ?? null,
    }));
  });
}

interface KnownDag {
  readonly dag_id: string;
  readonly file: string;
  readonly is_stale: boolean;
  readonly number: number | null;
  readonly bundle_hash: string | null;
  readonly manifest: Scheduling | null;
}

async function lockDags(tx: Connection, files: readonly FilePublication[]): Promise<Map<string, KnownDag>> {
  const ids = files.flatMap(({ manifests }) => manifests.map(({ dagId }) => dagId));
  await tx.rows(LOCK_DAGS, [ids, files.map(({ file }) => file)]);
  const rows = await tx.rows<KnownDag>(READ_DAGS, [ids]);
  return new Map(rows.map((row) => [row.dag_id, row]));
}

/** A file keeps the DAGs that it already declares. Among new files of one call, the first gets the DAG. */
function findTaken(
  files: readonly FilePublication[],
  known: ReadonlyMap<string, KnownDag>,
): Map<string, { dagId: string; by: string }> {
  const given = new Map(files.map(({ file, manifests }) => [file, new Set(manifests.map((m) => m.dagId))]));
  const owners = new Map<string, string>();
  for (const { dag_id, file, is_stale } of known.values()) {
    // The DAG moved: its file is published in the same call without it.
    const letGo = given.has(file) && !given.get(file)?.has(dag_id);
    if (!is_stale && !letGo) owners.set(dag_id, file);
  }
  const taken = new Map<string, { dagId: string; by: string }>();
  for (const { file, manifests } of files) {
    const lost = manifests.find(({ dagId }) => (owners.get(dagId) ?? file) !== file);
    if (lost) taken.set(file, { dagId: lost.dagId, by: owners.get(lost.dagId) ?? "" });
    else for (const { dagId } of manifests) owners.set(dagId, file);
  }
  return taken;
}

interface DagChange {
  readonly dagId: string;
  readonly file: string;
  readonly publication: FilePublication;
  readonly manifest: DagManifest;
  readonly isNew: boolean;
  /** The number of the version to create, or null. */
  readonly newNumber: number | null;
  readonly isChanged: boolean;
  readonly mustPlan: boolean;
}

function dagChange(
  publication: FilePublication,
  manifest: DagManifest,
  known: KnownDag | undefined,
): DagChange {
  const hasNewCode = known?.bundle_hash !== publication.bundle.hash;
  const cameBack = known?.is_stale ?? false;
  return {
    dagId: manifest.dagId,
    file: publication.file,
    publication,
    manifest,
    isNew: known === undefined,
    newNumber: hasNewCode ? (known?.number ?? 0) + 1 : null,
    isChanged: hasNewCode || cameBack || known?.file !== publication.file,
    mustPlan: cameBack || (hasNewCode && hasNewSchedule(manifest, known?.manifest)),
  };
}

/** New code may change a timetable class. For other schedules the manifest decides. */
function hasNewSchedule(manifest: DagManifest, known: Scheduling | null | undefined): boolean {
  return manifest.schedule.kind === "timetable" || scheduling(manifest) !== scheduling(known);
}

/** The options that decide when the next run is due. Only their change may move a run that is already planned. */
function scheduling(manifest: Scheduling | null | undefined): string {
  if (!manifest) return "";
  const { start, end, catchup, jitterMs = 0 } = manifest;
  return JSON.stringify([inOrder(manifest.schedule), start, end, catchup, jitterMs]);
}

/** jsonb does not keep the order of members. */
function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return members.map(([name, member]) => [name, inOrder(member)]);
}

async function writeDags(tx: Connection, dags: readonly DagChange[], options: PublishOptions): Promise<void> {
  if (dags.length === 0) return;
  const added = dags.filter((dag) => dag.isNew);
  if (added.length > 0) {
    await tx.rows(ADD_DAGS, [
      added.map((dag) => dag.dagId),
      added.map((dag) => dag.file),
      options.isPausedAtCreation,
    ]);
  }
  const versions = await addVersions(
    tx,
    dags.filter((dag) => dag.newNumber !== null),
  );
  const plans = await planRuns(
    tx,
    dags.filter((dag) => dag.mustPlan),
    options.plan,
  );
  const planned = dags.map((dag) => plans.get(dag.dagId) ?? null);
  await tx.rows(UPDATE_DAGS, [
    dags.map((dag) => dag.dagId),
    dags.map((dag) => dag.file),
    dags.map((dag) => versions.get(dag.dagId) ?? null),
    dags.map((dag) => dag.mustPlan),
    planned.map((run) => run?.logicalDate ?? null),
    planned.map((run) => run?.intervalStart ?? null),
    planned.map((run) => run?.intervalEnd ?? null),
    planned.map((run) => run?.runAfter ?? null),
    dags.map((dag) => dag.manifest.schedule.kind === "continuous"),
  ]);
  await setScheduleTriggers(
    tx,
    dags.map(({ manifest, publication }) => ({ manifest, bundleHash: publication.bundle.hash })),
  );
  await setSignalSchedules(
    tx,
    dags.map(({ manifest }) => manifest),
  );
  await setAssets(
    tx,
    dags.filter(({ newNumber }) => newNumber !== null).map(({ manifest }) => manifest),
  );
}

/** Inserts versions. Returns their ids by DAG. */
async function addVersions(tx: Connection, dags: readonly DagChange[]): Promise<Map<string, number>> {
  if (dags.length === 0) return new Map();
  await addBundles(
    tx,
    dags.map(({ publication }) => publication.bundle),
  );
  const rows = await tx.rows<{ id: number; dag_id: string }>(ADD_VERSIONS, [
    dags.map((dag) => dag.dagId),
    dags.map((dag) => dag.newNumber),
    dags.map((dag) => dag.publication.bundle.hash),
    dags.map((dag) => JSON.stringify(dag.manifest)),
    dags.map((dag) => dag.publication.source.replaceAll("\u0000", "\uFFFD")),
  ]);
  const limits = dags
    .flatMap(({ dagId, manifest }) => [
      [dagLimitKey(dagId), manifest.maxActiveTasksPerDag] as const,
      ...manifest.tasks.map(
        ({ taskId, maxActivePerDag }) => [limitKey(dagId, taskId), maxActivePerDag] as const,
      ),
    ])
    .filter(([, most]) => most !== null && most !== undefined);
  if (limits.length > 0) await tx.rows(SET_LIMITS, [limits.map(([name]) => name), limits.map(([, n]) => n)]);
  return new Map(rows.map((row) => [row.dag_id, row.id]));
}

async function planRuns(
  tx: Connection,
  dags: readonly DagChange[],
  plan: Planner,
): Promise<Map<string, PlannedRun | null>> {
  if (dags.length === 0) return new Map();
  const clock = await tx.one<{ now: string }>(NOW);
  const rows = await tx.rows<LastRun>(LAST_RUNS, [dags.map((dag) => dag.dagId)]);
  const last = new Map(rows.map((row) => [row.dag_id, row]));
  const isOwn = ({ manifest }: DagChange) => manifest.schedule.kind === "timetable";
  await queryTimetables(
    tx,
    dags.filter(isOwn).map(({ dagId }) => ({ dagId, last: plannedRun(last.get(dagId)) })),
  );
  await forgetTimetables(
    tx,
    dags.filter((dag) => !isOwn(dag)).map(({ dagId }) => dagId),
  );
  return new Map(
    dags.map(({ dagId, manifest }) => [
      dagId,
      plan(manifest, plannedRun(last.get(dagId)), Math.floor(Number(clock?.now ?? 0))),
    ]),
  );
}

interface LastRun {
  readonly dag_id: string;
  readonly logical_date: Date | null;
  readonly interval_start: Date | null;
  readonly interval_end: Date | null;
  readonly run_after: Date;
}

function plannedRun(row: LastRun | undefined): PlannedRun | null {
  if (!row) return null;
  return {
    logicalDate: row.logical_date?.getTime() ?? null,
    intervalStart: row.interval_start?.getTime() ?? null,
    intervalEnd: row.interval_end?.getTime() ?? null,
    runAfter: row.run_after.getTime(),
  };
}
