import { waitedFor } from "@tradewind/sdk/builtin-triggers";
/** Loads claimed runs as actors: a new one from its DAG version alone, any other from its stored rows. */
import {
  type BranchVerdict,
  Drive,
  type ExpansionRow,
  type GroupRow,
  type InstanceRow,
  RunModel,
  type StoredStart,
  storedDrive,
  type Wait,
} from "../../model/index.ts";
import { senderName } from "../../model/signal/sender-name.ts";
import type { Database } from "../../store/database/database.ts";
import {
  type DriveRow,
  loadDrives,
  loadRetriedLetters,
  openDrives,
  type RetriedLetter,
} from "../../store/drive/run-drives.ts";
import { loadStarts } from "../../store/drive/run-starts.ts";
import type { ClaimedRun } from "../../store/run/run-claim.ts";
import { instanceFacts, type LoadedInstance, loadInstances, loadSkips } from "../../store/run/run-load.ts";
import { loadExpansions } from "../../store/task/map-expansions.ts";
import { groupRow, loadGroups } from "../../store/task/run-groups.ts";
import { RunSubscriptions } from "../drive/run-subscriptions.ts";
import { RunActor } from "./run-actor.ts";
import type { DagVersion, VersionCache } from "./version-cache.ts";

export async function loadActors(
  database: Database,
  versions: VersionCache,
  runs: readonly ClaimedRun[],
): Promise<RunActor[]> {
  const known = runs.filter((run) => !run.is_fresh).map((run) => run.id);
  const instances = known.length > 0 ? await loadInstances(database, known) : [];
  const skips = known.length > 0 ? await loadSkips(database, known) : [];
  const expansions = known.length > 0 ? await loadExpansions(database, known) : [];
  const byRun = Map.groupBy(instances, (row) => row.dag_run_id);
  const found = new Map<ClaimedRun, DagVersion>();
  for (const run of runs) found.set(run, await versions.get(database, run.version_id));
  const grouped = [...found].filter(([run, { graph }]) => !run.is_fresh && graph.groups.length > 0);
  const groups = await loadGroups(
    database,
    grouped.map(([{ id }]) => id),
  );
  const drives = await drivesOf(database, found);
  return [...found].map(([run, version]) => {
    const isOwn = (row: { readonly dag_run_id: number }) => row.dag_run_id === run.id;
    const drive = drives.get(run.id) ?? null;
    if (run.is_fresh) return newActor(run, version, drive);
    const journal = {
      instances: byRun.get(run.id) ?? [],
      skips: skips.filter(isOwn).map((row) => ({
        taskId: row.task_id,
        mapIndex: row.map_index,
        skip: row.value,
      })),
      expansions: expansions.filter(isOwn).map(({ map_id: mapId, parent, base, length, tries }) => {
        return { mapId, parent, base, length, tries };
      }),
      groups: groups.filter(isOwn).map(groupRow),
      drive,
    };
    return loadedActor(run, version, journal);
  });
}

interface LoadedDrive extends DriveRow {
  readonly starts: readonly StoredStart[];
  readonly letters: readonly RetriedLetter[];
}

/** A run that is not signal-driven may have manual commands. */
async function drivesOf(
  database: Database,
  runs: ReadonlyMap<ClaimedRun, DagVersion>,
): Promise<Map<number, LoadedDrive>> {
  const driven = [...runs].filter(([, version]) => version.isDriven).map(([run]) => run.id);
  const known = [...runs.keys()].filter((run) => !run.is_fresh).map((run) => run.id);
  if (driven.length + known.length === 0) return new Map();
  await openDrives(database, driven);
  const rows = await loadDrives(database, [...new Set([...driven, ...known])]);
  const starts = await loadStarts(
    database,
    rows.map(({ dag_run_id: id }) => id),
  );
  const letters = await lettersOf(database, runs);
  return new Map(
    rows.map((row) => {
      const { dag_run_id: id } = row;
      return [id, { ...row, starts: starts.get(id) ?? [], letters: letters.get(id) ?? [] }];
    }),
  );
}

/** Dead letters of an `onSignal` that are to be retried. */
async function lettersOf(
  database: Database,
  runs: ReadonlyMap<ClaimedRun, DagVersion>,
): Promise<Map<number, RetriedLetter[]>> {
  const runOf = new Map<string, number>();
  for (const [{ dag_id: dagId, id, run_id: runId }, { manifest }] of runs) {
    for (const { reacts, taskId } of manifest.tasks)
      if (reacts) runOf.set(senderName({ dagId, runId, taskId }), id);
  }
  const letters = await loadRetriedLetters(database, [...runOf.keys()]);
  return Map.groupBy(letters, ({ listener }) => runOf.get(listener)!);
}

function driveOf(run: ClaimedRun, version: DagVersion, row: LoadedDrive | null): Drive | null {
  if (!row) return null;
  return new Drive({
    manifest: version.manifest,
    rules: version.rules,
    run: { dagId: run.dag_id, runId: run.run_id, conf: run.conf },
    startedAt: run.started_at?.getTime() ?? row.since.getTime(),
    stored: storedDrive(row.state),
    starts: row.starts,
  });
}

function subscriptionsOf(
  run: ClaimedRun,
  version: DagVersion,
  row: LoadedDrive | null,
): RunSubscriptions | null {
  return row && new RunSubscriptions({ dagId: run.dag_id, runId: run.run_id }, version, row);
}

function newActor(run: ClaimedRun, version: DagVersion, drive: LoadedDrive | null): RunActor {
  const rows = version.graph.nodes.map(
    (node): InstanceRow => ({
      taskId: node.id,
      mapIndex: -1,
      state: "pending",
      tryNumber: 0,
      maxTries: node.manifest.retries,
      attempt: null,
      retryAt: null,
      infraLosses: 0,
    }),
  );
  const model = RunModel.load(version.graph, rows, { drive: driveOf(run, version, drive) });
  return new RunActor(run, version, { model, subscriptions: subscriptionsOf(run, version, drive) });
}

interface Journal {
  readonly instances: readonly LoadedInstance[];
  readonly skips: readonly BranchVerdict[];
  readonly expansions: readonly ExpansionRow[];
  readonly groups: readonly GroupRow[];
  readonly drive: LoadedDrive | null;
}

function loadedActor(run: ClaimedRun, version: DagVersion, journal: Journal): RunActor {
  const rows = journal.instances.map(
    (row): InstanceRow => ({
      ...instanceFacts(row),
      retryAt: row.retry_at?.getTime() ?? null,
      infraLosses: row.infra_losses,
      startedAt: row.started_at?.getTime() ?? null,
      resumedAttempt: row.resumed_attempt,
      wait: loadedWait(row),
    }),
  );
  const drive = driveOf(run, version, journal.drive);
  const model = RunModel.load(version.graph, rows, { ...journal, drive });
  for (const row of journal.instances) {
    const instance = model.get(row.task_id, row.map_index);
    if (!instance) continue;
    instance.scheduledAt = row.scheduled_at?.getTime() ?? null;
    instance.queuedAt = row.queued_at?.getTime() ?? null;
    instance.attemptStartedAt = row.attempt_started_at?.getTime() ?? null;
    instance.endedAt = row.ended_at?.getTime() ?? null;
    instance.place = { pool: row.pool, slots: row.pool_slots, limitKey: row.limit_key };
    instance.pid = row.pid;
  }
  return new RunActor(run, version, { model, subscriptions: subscriptionsOf(run, version, journal.drive) });
}

function loadedWait(row: LoadedInstance): Wait | null {
  if (row.state !== "deferred") return null;
  const timeoutAt = row.timeout_at?.getTime() ?? null;
  const timeoutMs = timeoutAt === null || !row.deferred_at ? null : timeoutAt - row.deferred_at.getTime();
  const wait = {
    timeoutAt,
    timeoutMs,
    onTimeout: row.on_timeout ?? "fail",
    keepsSlot: row.keeps_slot,
  } as const;
  const { wait_args: args, wait_kind: kind, wait_method: method } = row;
  return kind === null ? wait : { ...wait, method, what: waitedFor({ kind, args }) };
}
