/**
 * `…/conditions`: what drives a run besides the order of its tasks, and how far each rule is. The engine's own model says
 * so, of what the run's owner has stored; a signal that it has not come to yet has no part in it.
 */
import type { DagManifest, TaskManifest } from "@tradewind/sdk/manifest";
import { z } from "zod";
import {
  type Asking,
  Drive,
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
    /** null: the run's own, which closes it. */
    task_id: z.string().nullable(),
    /** Its place among the rules of its task. */
    rule_index: z.number(),
    action: z.enum(["start", "restart", "stop"]),
    once: z.boolean(),
    /** As it is written. */
    condition: z.string(),
    /** What is still to be heard for it to fire. */
    missing: z.string(),
    /** false: it has fired and was to fire once, or the run is closed. */
    is_armed: z.boolean(),
    /** null: the run is over, and with it the count. */
    fired: z.number().nullable(),
    parts: z.array(
      z.object({
        text: z.string(),
        is_met: z.boolean(),
        /** Of the signal that it has heard last. */
        version: z.number().nullable(),
        /** The latest value, where that counts; left out when it is large. */
        latest: z.any().optional(),
      }),
    ),
  })
  .meta({ id: "SignalRule" });

const taskDocument = z.object({
  task_id: z.string(),
  /** It does not start by its upstream tasks alone. */
  needs_start: z.boolean(),
  is_streaming: z.boolean(),
  /** Starts that were asked for and wait. */
  pending_starts: z.number(),
  /** By what its current attempt is being stopped. */
  stopping: z.string().nullable(),
  next_tick: nullableDate,
  /** What its `onSignal` is asked about: keys, before them the namespace if it is not the default one. */
  reacts_to: z.array(z.string()),
  /** Its `onSignal` has failed on this one and is asked again; its later signals wait. */
  asking: z
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
    /** null: a prepared transaction, which has a gid. */
    pid: z.number().nullable(),
    gid: z.string().nullable(),
    database: z.string(),
    user: z.string(),
    application: z.string().nullable(),
    /** null, as age_seconds and query: the server's role is not allowed to read it. */
    state: z.string().nullable(),
    age_seconds: z.number().nullable(),
    query: z.string().nullable(),
    /** All of this in a sentence, with the remedy. */
    message: z.string(),
  })
  .meta({ id: "SignalBlocker" });

const conditionsDocument = z
  .object({
    dag_id: z.string(),
    dag_run_id: z.string(),
    run_state: z.string(),
    /** false: its tasks follow each other, and that is all. */
    is_driven: z.boolean(),
    /** By what: nothing is heard any more. "its end": the run is over, and had not been closed before. */
    closed: z.string().nullable(),
    next_tick: nullableDate,
    rules: z.array(ruleDocument),
    /** Those that signals, ticks or orders have to do with. */
    tasks: z.array(taskDocument),
    /** Open transactions because of which the run does not receive signals that were sent; the oldest first. */
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

/** A run and what drives it, as the engine would load it. */
export interface DrivenRun {
  readonly run: DrivenRunRow;
  readonly manifest: DagManifest;
  readonly drive: Drive;
  readonly isDriven: boolean;
}

/** null: there is no such run. */
export async function readDrivenRun(
  connection: Connection,
  dagId: string,
  runId: string,
): Promise<DrivenRun | null> {
  const row = await findDrivenRun(connection, dagId, runId);
  return row === undefined ? null : (await withDrives(connection, [row]))[0]!;
}

/** Rules are compiled once per version: many runs of a page have the same. */
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
    // What drove it was forgotten with its end: it hears nothing.
    if (isOver(run)) drive.close(run.closed_by ?? "its end");
    return { run, manifest, drive, isDriven: run.has_drive || isDriven(manifest) };
  });
}

function show(driven: DrivenRun, blockers: readonly SignalBlocker[]): z.output<typeof conditionsDocument> {
  const { drive, isDriven, manifest, run } = driven;
  // Until it starts nobody knows from when on its intervals count.
  const tick = (at: number | null) => (at === null || run.state !== "running" ? null : iso(new Date(at)));
  const tasks = manifest.tasks.map((task) => ({
    task_id: task.taskId,
    needs_start: drive.needsStart(task.taskId),
    is_streaming: isStreaming(task),
    pending_starts: drive.starts(task.taskId),
    stopping: drive.stopping(task.taskId),
    next_tick: tick(drive.tickAt(task.taskId)),
    reacts_to: signalNames(task),
    asking: showAsking(drive.asking(task.taskId)),
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
  return `Signals are held back: ${describeBlocker(blocker)}. To go on, ${blockerRemedy(blocker)}`;
}

/** What the `onSignal` of a task is asked about. */
export function signalNames({ reacts = [] }: TaskManifest): string[] {
  return reacts.map(({ key, namespace }) => (namespace === "default" ? key : `${namespace}:${key}`));
}

function isOver({ state }: DrivenRunRow): boolean {
  return state === "success" || state === "failed";
}

function showAsking(asking: Asking | null): z.output<typeof taskDocument>["asking"] {
  if (asking === null) return null;
  const { againAt, attempts, error, key, version } = asking;
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
