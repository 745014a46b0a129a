/**
 * `…/conditions`: the signal rules of a run, and the progress of each. Computed by the engine's model from the state stored by
 * the run's owner; signals that the owner has not processed yet are not included.
 */
import type { DagManifest, TaskManifest } from "@tradewind/sdk/manifest";
import { z } from "zod";
import {
  Drive,
  type FailedOnSignal,
  isDriven,
  isStreaming,
  type RuleReport,
  RuleSet,
  storedDrive,
} from "../../model/index.ts";
import type { Connection } from "../../store/database/database.ts";
import { readManifests } from "../../store/list/dag-versions.ts";
import {
  DRIVEN_RUN_ORDER,
  type DrivenRunRow,
  findDrivenRun,
  listDrivenRuns,
} from "../../store/list/run-drives.ts";
import {
  blockerRemedy,
  describeBlocker,
  type SignalBlocker,
  signalBlockers,
} from "../../store/signal/signals-blockers.ts";
import { runParams } from "../run/dag-runs.ts";
import type { Resource } from "../server/context.ts";
import { cursorPageOf, cursorQuery, id, iso, nullableDate, orderBy } from "../server/fields.ts";
import { notFound } from "../server/problem.ts";

const ruleDocument = z
  .object({
    /** null: a rule that closes the run. */
    task_id: z.string().nullable(),
    /** Its index among the rules of its task. */
    rule_index: z.number(),
    action: z.enum(["start", "restart", "stop"]),
    once: z.boolean(),
    /** The condition as written. */
    condition: z.string(),
    /** The signals that are still missing. */
    missing: z.string(),
    /** false: a one-time rule that has fired, or the run is closed. */
    is_armed: z.boolean(),
    /** null after the end of the run: the count is not kept. */
    fired: z.number().nullable(),
    parts: z.array(
      z.object({
        text: z.string(),
        is_met: z.boolean(),
        /** Version of the last received signal. */
        version: z.number().nullable(),
        /** The latest value if it matters; omitted if large. */
        latest: z.any().optional(),
      }),
    ),
  })
  .meta({ id: "SignalRule" });

const taskDocument = z.object({
  task_id: z.string(),
  /** Upstream tasks alone do not start it. */
  needs_start: z.boolean(),
  is_streaming: z.boolean(),
  /** Requested starts that are pending. */
  pending_starts: z.number(),
  /** What stops its current attempt. */
  stopping: z.string().nullable(),
  next_tick: nullableDate,
  /** Signals handled by its `onSignal`: keys, prefixed with the namespace unless it is the default. */
  reacts_to: z.array(z.string()),
  /** The signal on which its `onSignal` failed and which is retried; later signals wait. */
  on_signal_failure: z
    .object({
      key: z.string(),
      version: z.number(),
      attempts: z.number(),
      error: z.string(),
      again_at: nullableDate,
    })
    .nullable(),
});

const blockerDocument = z
  .object({
    /** null: a prepared transaction, identified by gid. */
    pid: z.number().nullable(),
    gid: z.string().nullable(),
    database: z.string(),
    user: z.string(),
    application: z.string().nullable(),
    /** null, like age_seconds and query, if the server's role has no permission to read it. */
    state: z.string().nullable(),
    age_seconds: z.number().nullable(),
    query: z.string().nullable(),
    /** A summary with the remedy. */
    message: z.string(),
  })
  .meta({ id: "SignalBlocker" });

const conditionsDocument = z
  .object({
    dag_id: z.string(),
    dag_run_id: z.string(),
    run_state: z.string(),
    /** false: not signal-driven. */
    is_driven: z.boolean(),
    /** The cause of the close, after which no signals are received. "its end": the run ended without being closed. */
    closed: z.string().nullable(),
    next_tick: nullableDate,
    rules: z.array(ruleDocument),
    /** Tasks with signals, ticks or manual commands. */
    tasks: z.array(taskDocument),
    /** Open transactions that block signals to the run, oldest first. */
    held_by: z.array(blockerDocument),
  })
  .meta({ id: "RunConditions" });

const listQuery = z.strictObject({
  ...cursorQuery,
  dag_id: id.optional(),
  order_by: orderBy(DRIVEN_RUN_ORDER, "start_date"),
});

export const conditions: Resource = (app, { database }) => {
  app.get(
    "/api/v2/dags/:dag_id/dagRuns/:dag_run_id/conditions",
    { schema: { params: runParams, response: { 200: conditionsDocument }, tags: ["Signal"] } },
    async ({ params }) => {
      const driven = await readDrivenRun(database, params.dag_id, params.dag_run_id);
      if (driven === null) throw notFound(`DAG "${params.dag_id}" has no run "${params.dag_run_id}"`);
      return show(driven, await signalBlockers(database));
    },
  );

  app.get(
    "/api/v2/signals/conditions",
    {
      schema: {
        querystring: listQuery,
        response: {
          200: z.object({
            runs: z.array(conditionsDocument),
            total_entries: z.number().nullable(),
            next_cursor: z.string().nullable(),
            previous_cursor: z.string().nullable(),
          }),
        },
        tags: ["Signal"],
      },
    },
    async ({ query }) => {
      const found = await listDrivenRuns(database, { dagId: query.dag_id }, cursorPageOf(query));
      const blockers = await signalBlockers(database);
      return {
        runs: (await withDrives(database, found.rows)).map((each) => show(each, blockers)),
        total_entries: found.total,
        next_cursor: found.next,
        previous_cursor: found.previous,
      };
    },
  );
};

/** A run with its rules, as loaded by the engine. */
export interface DrivenRun {
  readonly run: DrivenRunRow;
  readonly manifest: DagManifest;
  readonly drive: Drive;
  readonly isDriven: boolean;
}

/** null: unknown run. */
export async function readDrivenRun(
  connection: Connection,
  dagId: string,
  runId: string,
): Promise<DrivenRun | null> {
  const row = await findDrivenRun(connection, dagId, runId);
  return row === undefined ? null : (await withDrives(connection, [row]))[0]!;
}

/** Compiles rules once per version: many runs of a page share one. */
async function withDrives(connection: Connection, rows: readonly DrivenRunRow[]): Promise<DrivenRun[]> {
  const manifests = await readManifests(
    connection,
    rows.map(({ version_id }) => version_id),
  );
  const ruleSets = new Map([...manifests].map(([version, manifest]) => [version, new RuleSet(manifest)]));
  return rows.map((run) => {
    const { conf, dag_id: dagId, run_id: runId, version_id: version } = run;
    const manifest = manifests.get(version)!;
    const drive = new Drive({
      manifest,
      rules: ruleSets.get(version)!,
      run: { dagId, runId, conf },
      startedAt: run.started_at?.getTime() ?? 0,
      stored: storedDrive(run.drive),
      starts: Object.entries(run.starts ?? {}).flatMap(([taskId, count]) =>
        Array.from({ length: count }, (_, ordinal) => ({ taskId, ordinal, cause: null })),
      ),
    });
    // The state is deleted with the end of a run: it receives no signals.
    if (isOver(run)) drive.close(run.closed_by ?? "its end");
    return { run, manifest, drive, isDriven: run.has_drive || isDriven(manifest) };
  });
}

function show(driven: DrivenRun, blockers: readonly SignalBlocker[]): z.output<typeof conditionsDocument> {
  const { drive, isDriven, manifest, run } = driven;
  // Before the start, the base of its intervals is unknown.
  const tick = (at: number | null) => (at === null || run.state !== "running" ? null : iso(new Date(at)));
  const tasks = manifest.tasks.map((task) => ({
    task_id: task.taskId,
    needs_start: drive.needsStart(task.taskId),
    is_streaming: isStreaming(task),
    pending_starts: drive.starts(task.taskId),
    stopping: drive.stopping(task.taskId),
    next_tick: tick(drive.tickAt(task.taskId)),
    reacts_to: signalNames(task),
    on_signal_failure: showFailure(drive.failedOnSignal(task.taskId)),
    has_rules: task.rules !== undefined,
  }));
  return {
    dag_id: run.dag_id,
    dag_run_id: run.run_id,
    run_state: run.state,
    is_driven: isDriven,
    closed: drive.closed,
    next_tick: tick(drive.nextTickAt()),
    rules: drive.report().map((rule) => showRule(rule, isOver(run))),
    tasks: tasks
      .filter(
        (each) =>
          each.needs_start ||
          each.is_streaming ||
          each.has_rules ||
          each.pending_starts > 0 ||
          each.stopping !== null,
      )
      .map(({ has_rules: _, ...shown }) => shown),
    held_by: receivesSignals(driven) ? blockers.map(showBlocker) : [],
  };
}

export function receivesSignals({ drive, isDriven, run }: DrivenRun): boolean {
  return isDriven && run.state === "running" && drive.closed === null;
}

function showBlocker(blocker: SignalBlocker): z.output<typeof blockerDocument> {
  const { isolation: _, ...facts } = blocker;
  return { ...facts, message: blockerMessage(blocker) };
}

export function blockerMessage(blocker: SignalBlocker): string {
  return `Signals are blocked: ${describeBlocker(blocker)}. Remedy: ${blockerRemedy(blocker)}`;
}

/** The signals handled by the `onSignal` of a task. */
export function signalNames({ reacts = [] }: TaskManifest): string[] {
  return reacts.map(({ key, namespace }) => (namespace === "default" ? key : `${namespace}:${key}`));
}

function isOver({ state }: DrivenRunRow): boolean {
  return state === "success" || state === "failed";
}

function showFailure(failed: FailedOnSignal | null): z.output<typeof taskDocument>["on_signal_failure"] {
  if (failed === null) return null;
  const { againAt, attempts, error, key, version } = failed;
  return { key, version, attempts, error, again_at: iso(new Date(againAt)) };
}

function showRule(rule: RuleReport, isOver: boolean): z.output<typeof ruleDocument> {
  return {
    task_id: rule.taskId,
    rule_index: rule.ruleIndex,
    action: rule.action,
    once: rule.once,
    condition: rule.text,
    missing: rule.missing,
    is_armed: rule.isArmed,
    fired: isOver ? null : rule.fired,
    parts: rule.leaves.map(({ latest, met, text, version }) => ({
      text,
      is_met: met,
      version,
      ...(latest === undefined ? {} : { latest }),
    })),
  };
}
