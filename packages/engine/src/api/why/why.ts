/**
 * `/why` and Airflow's `/dependencies`: what blocks the start of a task, with the figures. Reads the data that the scheduler
 * decides by, and decides nothing itself.
 */
import type { DagManifest, TaskManifest } from "@tradewind/sdk/manifest";
import { z } from "zod";
import { FINISHED, isTaskState } from "../../model/run/states.ts";
import type { Database } from "../../store/database/database.ts";
import type { DagRunRow } from "../../store/list/dag-runs.ts";
import { readManifests } from "../../store/list/dag-versions.ts";
import type { DagRow } from "../../store/list/dags.ts";
import {
  findTaskInstance,
  type InstanceAddress,
  type TaskInstanceRow,
} from "../../store/list/task-instances.ts";
import { limitNames } from "../../store/pool/limit-key.ts";
import { countActivity, widerAhead } from "../../store/why/why-facts.ts";
import { requireDag } from "../dag/dags.ts";
import { requireRun } from "../run/dag-runs.ts";
import type { Resource } from "../server/context.ts";
import {
  failedUpstreamDocument,
  instanceAddress,
  instanceName,
  renderedMapIndex,
  showFailedUpstream,
} from "../server/documents.ts";
import { iso, nullableDate } from "../server/fields.ts";
import { requireMapIndex } from "../server/map-index.ts";
import { notFound } from "../server/problem.ts";
import { type DrivenRun, readDrivenRun } from "../signal/conditions.ts";
import { addressOf, describe, mappedParams, mapQuery, taskParams } from "../task/task-instances.ts";
import { deferredReasons, type Finding } from "./why-deferred.ts";
import { againReasons, heldReasons, startReasons, underWayReasons } from "./why-driven.ts";
import { queuedReasons as executorReasons } from "./why-executor.ts";
import { queuedReasons, stoppedReasons } from "./why-held-run.ts";
import { countMapped, describeState, stateCounts, sumUp } from "./why-map.ts";
import { pastReasons } from "./why-past.ts";
import { poolReasons } from "./why-pools.ts";
import { retryReasons } from "./why-retried.ts";
import { slotReasons } from "./why-slots.ts";
import { endReasons, upstreamReasons } from "./why-upstream.ts";

const reasonDocument = z.object({
  code: z.string(),
  message: z.string(),
  /** When the reason ends by itself, if known. */
  until: nullableDate,
  /** Only for reasons that name other instances: the first of each task and state. */
  tasks: z
    .array(z.object({ task_id: z.string(), map_index: z.number(), state: z.string().nullable() }))
    .optional(),
  /** The run of `tasks`, if it is another one. */
  dag_run_id: z.string().optional(),
});
type Reason = z.output<typeof reasonDocument>;

const whyDocument = z.object({
  ...instanceAddress,
  state: z.string().nullable(),
  run_state: z.string(),
  /** For an instance in state upstream_failed: the failed instance at the start of the chain. */
  failed_upstream: failedUpstreamDocument.nullable(),
  reasons: z.array(reasonDocument),
  /** For a mapped task as a whole. */
  instances: stateCounts.nullable(),
});
const dependencies = z.object({ dependencies: z.array(z.object({ name: z.string(), reason: z.string() })) });

const BASE = "/api/v2/dags/:dag_id/dagRuns/:dag_run_id/taskInstances/:task_id";

export const why: Resource = (app, { database }) => {
  const tags = ["Task Instance"];
  const asDependencies = async (address: InstanceAddress) => ({
    dependencies: (await explain(database, address)).reasons.map(({ code, message }) => ({
      name: code,
      reason: message,
    })),
  });

  app.get(
    `${BASE}/why`,
    { schema: { params: taskParams, querystring: mapQuery, response: { 200: whyDocument }, tags } },
    ({ params, query }) => explain(database, addressOf(params, query.map_index)),
  );
  app.get(
    `${BASE}/:map_index/why`,
    { schema: { params: mappedParams, response: { 200: whyDocument }, tags } },
    ({ params }) => explain(database, addressOf(params, params.map_index)),
  );
  app.get(
    `${BASE}/dependencies`,
    { schema: { params: taskParams, querystring: mapQuery, response: { 200: dependencies }, tags } },
    ({ params, query }) => asDependencies(addressOf(params, query.map_index)),
  );
  app.get(
    `${BASE}/:map_index/dependencies`,
    { schema: { params: mappedParams, response: { 200: dependencies }, tags } },
    ({ params }) => asDependencies(addressOf(params, params.map_index)),
  );
};

interface Case {
  readonly database: Database;
  readonly dag: DagRow;
  readonly run: DagRunRow;
  readonly manifest: DagManifest;
  readonly task: TaskManifest;
  /** undefined before the start of the run. */
  readonly instance: TaskInstanceRow | undefined;
  /** null: the run is not running, or not signal-driven. */
  readonly driven: DrivenRun | null;
}

async function explain(database: Database, address: InstanceAddress): Promise<z.output<typeof whyDocument>> {
  const [dag, run, instance] = await Promise.all([
    requireDag(database, address.dagId),
    requireRun(database, { dag_id: address.dagId, dag_run_id: address.runId }),
    findTaskInstance(database, address),
  ]);
  const manifest = (await readManifests(database, [run.version_id])).get(run.version_id);
  const task = manifest?.tasks.find((each) => each.taskId === address.taskId);
  if (manifest === undefined || task === undefined) throw notFound(`${describe(address)} does not exist`);
  const driven = run.state === "running" ? await readDrivenRun(database, run.dag_id, run.run_id) : null;
  const facts = { dag, database, driven: driven?.isDriven ? driven : null, instance, manifest, run, task };
  const isWhole = instance === undefined && task.map !== undefined && address.mapIndex === -1;
  if (instance === undefined && address.mapIndex !== -1)
    await requireMapIndex(database, { run, taskId: task.taskId }, address.mapIndex);
  const whole = isWhole ? await countMapped(database, run.id, task.taskId) : null;
  const reasons = whole ? await mapReasons(facts, address, whole) : await reasonsOf(facts);
  return {
    dag_id: address.dagId,
    dag_run_id: address.runId,
    task_id: address.taskId,
    map_index: address.mapIndex,
    rendered_map_index: instance === undefined ? null : renderedMapIndex(instance),
    state: instance === undefined || instance.state === "pending" ? null : instance.state,
    run_state: run.state,
    failed_upstream: showFailedUpstream(instance?.failed_upstream ?? null),
    reasons: [...reasons, ...(await heldReasons(facts)).map(shown)],
    instances: whole?.counts ?? null,
  };
}

/** Counts per state, then what blocks one instance of each. */
async function mapReasons(
  facts: Case,
  address: InstanceAddress,
  { counts, samples }: NonNullable<Awaited<ReturnType<typeof countMapped>>>,
): Promise<Reason[]> {
  const each = samples.map(async (sample) => {
    const instance = await findTaskInstance(facts.database, { ...address, mapIndex: sample.mapIndex });
    const says = describeState(sample, instance ? instanceName(instance) : null);
    const reasons = await reasonsOf({ ...facts, instance });
    return reasons.map((one) => ({ ...one, message: `${says}: ${one.message}` }));
  });
  return [reason("MAPPED", sumUp(counts)), ...(await Promise.all(each)).flat()];
}

async function reasonsOf(facts: Case): Promise<Reason[]> {
  const { driven, instance, run, task } = facts;
  const state = instance?.state ?? "pending";
  if (isTaskState(state) && FINISHED.has(state)) {
    const ended = `It has ended: ${state}${instance?.reason ? ` (${instance.reason})` : ""}.`;
    const again = driven ? againReasons(driven, task) : [];
    const retried = await retryReasons(facts.database, facts);
    const decided = await endReasons(facts.database, facts);
    return [reason("FINISHED", ended), ...[...decided, ...retried, ...again].map(shown)];
  }
  const underWay = driven ? underWayReasons(driven, task).map(shown) : [];
  if (state === "running" || state === "restarting")
    return [reason("RUNNING", `It is running${onWorker(instance)}.`), ...underWay];
  if (run.state === "success" || run.state === "failed") {
    return [reason("RUN_FINISHED", `The run has ended: ${run.state}. Clear the task to run it again.`)];
  }
  const general = (await stoppedReasons(facts.database, run, facts.dag)).map(shown);
  const own =
    run.state === "queued"
      ? (await queuedReasons(facts.database, run, facts.manifest.maxActiveRuns)).map(shown)
      : [...(await instanceReasons(facts, state)), ...(state === "pending" ? [] : underWay)];
  // An imminent start is only correct if nothing else blocks the task.
  return general.length === 0 ? own : [...general, ...own.filter(({ code }) => !IMMINENT.has(code))];
}

const IMMINENT = new Set(["READY", "RUN_QUEUED"]);

async function instanceReasons(facts: Case, state: string): Promise<Reason[]> {
  const { driven, instance, task } = facts;
  switch (state) {
    case "up_for_retry":
    case "up_for_reschedule": {
      const at = instance?.retry_at ?? null;
      return [
        reason(
          "RETRY_DELAY",
          `Try ${instance?.try_number} failed${instance?.reason ? ` (${instance.reason})` : ""}; the next try starts ${at === null ? "soon" : `at ${iso(at)}`}.`,
          at,
        ),
      ];
    }
    case "deferred":
      return (
        await deferredReasons(facts.database, instance?.wait ?? null, {
          tryEnds: tryEnds(facts),
          approval: facts.task.approval,
        })
      ).map(shown);
    case "queued":
      return instance ? (await executorReasons(facts.database, instance)).map(shown) : [];
    case "scheduled":
      return limitReasons(facts);
    default: {
      const start = driven ? startReasons(driven, task, instance?.try_number ?? 0).map(shown) : [];
      const waiting = [
        ...(await upstreamReasons(facts.database, facts)).map(shown),
        ...(await pastReasons(facts.database, facts)).map(shown),
      ];
      const isAsked = start[0]?.code === "START_PENDING";
      return waiting.length > 0 || (start.length > 0 && !isAsked)
        ? [...start, ...waiting]
        : [...start, ...(await limitReasons(facts))];
    }
  }
}

function onWorker({ executor_job: job, hostname }: Partial<TaskInstanceRow> = {}): string {
  return job?.kind === "worker" ? ` on worker "${job.name}" on ${hostname}` : "";
}

/** The task's own timeout, which counts from the first start of the try and includes waits. */
function tryEnds({ instance, task }: Case): Date | null {
  const startedAt = instance?.started_at ?? null;
  return startedAt === null || task.timeoutMs === null
    ? null
    : new Date(startedAt.getTime() + task.timeoutMs);
}

async function limitReasons({ database, instance, manifest, run, task }: Case): Promise<Reason[]> {
  const reasons: Reason[] = [];
  const activity = await countActivity(database, run.id, task.taskId);
  if (activity.in_run >= manifest.maxActiveTasks) {
    reasons.push(
      reason(
        "MAX_ACTIVE_TASKS",
        `${activity.in_run} of at most ${manifest.maxActiveTasks} tasks of this run are active.`,
      ),
    );
  }
  const perRun = task.maxActivePerRun;
  if (perRun !== null && activity.of_task >= perRun) {
    reasons.push(
      reason(
        "MAX_ACTIVE_PER_RUN",
        `${activity.of_task} of at most ${perRun} instances of this task are active in this run.`,
      ),
    );
  }
  const needs = new Map([[instance?.pool ?? task.pool, instance?.pool_slots ?? task.poolSlots]]);
  for (const name of limitNames(instance?.limit_key ?? null)) needs.set(name, 1);
  reasons.push(...(await poolReasons(database, needs)).map(shown));
  if (reasons.length > 0) return reasons;
  const wider = instance && (await widerAhead(database, instance));
  if (wider) {
    const { dag_id, run_id, task_id, pool_slots } = wider;
    const whose = `task "${task_id}" of run "${run_id}" of DAG "${dag_id}"`;
    return [
      reason(
        "POOL_KEPT",
        `Slots of its pool are reserved for ${whose}, which has priority and needs ${pool_slots}.`,
      ),
    ];
  }
  const full = await slotReasons(database, run.owner_job, {
    executor: instance?.executor ?? task.executor,
    isStreaming: task.lifetime === "streaming",
  });
  if (full.length > 0) return full.map(shown);
  // Only the scheduler has the list of live processes.
  const but = task.role === "work" ? "" : " except tasks of its run that are still being stopped, if any";
  return [reason("READY", `Nothing blocks it${but}: the scheduler is about to queue it.`)];
}

function shown({ code, message, runId, tasks, until }: Finding): Reason {
  return {
    ...reason(code, message, until),
    ...(tasks && { tasks: [...tasks] }),
    ...(runId !== undefined && { dag_run_id: runId }),
  };
}

function reason(code: string, message: string, until: Date | null = null): Reason {
  return { code, message, until: iso(until) };
}
