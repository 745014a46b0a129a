/** `/workers`: the workers of remote executors, and what they are running. Airflow has no such resource. */
import { z } from "zod";
import type { Connection } from "../../store/database/database.ts";
import { drainWorker, removeWorker } from "../../store/execute/worker-edits.ts";
import {
  findWorker,
  listWorkers,
  WORKER_ORDER,
  WORKER_STATES,
  type WorkerAssignment,
  type WorkerRow,
  workerAssignments,
} from "../../store/list/workers.ts";
import { pageOf } from "../dag/dags.ts";
import type { Resource } from "../server/context.ts";
import { date, id, int, iso, many, nullableDate, orderBy, pageQuery } from "../server/fields.ts";
import { change } from "../server/idempotent.ts";
import { conflict, notFound } from "../server/problem.ts";

const shape = {
  id: z.number(),
  name: z.string(),
  hostname: z.string(),
  pid: z.number(),
  version: z.string(),
  /** "draining": it starts nothing more; "dead": it has sent no heartbeat for 20 s, or was removed; "stopped": it signed off. */
  state: z.enum(WORKER_STATES),
  /** Null: the worker of one pod, which runs a single task. */
  queues: z.array(z.string()).nullable(),
  labels: z.record(z.string(), z.string()),
  slots: z.number(),
  free_slots: z.number(),
  /** Tasks and callbacks that it is running. */
  running: z.number(),
  start_date: date,
  end_date: nullableDate,
  latest_heartbeat: date,
  /** Seconds since then, by the clock of the database. A heartbeat is answered after up to 4 s. */
  heartbeat_age: z.number(),
};
const workerDocument = z.object(shape).meta({ id: "WorkerResponse" });

const attemptDocument = z.object({
  id: z.string(),
  kind: z.enum(["attempt", "callback", "reaction"]),
  dag_id: z.string(),
  dag_run_id: z.string(),
  /** Null: a callback of a run or a group. */
  task_id: z.string().nullable(),
  map_index: z.number().nullable(),
  try_number: z.number(),
  executor: z.string(),
  queue: z.string(),
  claimed_at: date,
  /** It was cancelled, cleared or superseded, and is about to end. */
  is_stopping: z.boolean(),
});
const detailDocument = z
  .object({ ...shape, attempts: z.array(attemptDocument) })
  .meta({ id: "WorkerDetailResponse" });

const listQuery = z.strictObject({
  ...pageQuery,
  state: many(z.enum(WORKER_STATES)).optional(),
  name: many(id).optional(),
  queue: many(id).optional(),
  order_by: orderBy(WORKER_ORDER, "id"),
});
const params = z.object({ worker_id: int(1) });
const drainBody = z.strictObject({ is_draining: z.boolean() });

export const workers: Resource = (app, options) => {
  const { database, notify } = options;
  const tags = ["Worker"];

  app.get(
    "/api/v2/workers",
    {
      schema: {
        querystring: listQuery,
        response: { 200: z.object({ workers: z.array(workerDocument), total_entries: z.number() }) },
        tags,
      },
    },
    async ({ query }) => {
      const filter = { states: query.state, names: query.name, queues: query.queue };
      const { rows, total } = await listWorkers(database, filter, pageOf(query));
      return { workers: rows.map(show), total_entries: total };
    },
  );

  app.get(
    "/api/v2/workers/:worker_id",
    { schema: { params, response: { 200: detailDocument }, tags } },
    async (request) => detail(database, request.params.worker_id),
  );

  app.post(
    "/api/v2/workers/:worker_id/drain",
    { schema: { params, body: drainBody, response: { 200: detailDocument }, tags } },
    async (request) => {
      const { worker_id: workerId } = request.params;
      const { is_draining: isDraining } = request.body;
      await change(options, request, async (tx) => {
        const { name } = await requireLive(tx, workerId);
        if (!(await drainWorker(tx, workerId, isDraining))) throw ended(workerId, "dead");
        const action = isDraining ? "drain_worker" : "undrain_worker";
        return {
          result: null,
          deed: { action, about: `workers/${workerId}`, details: { id: workerId, name } },
        };
      });
      notify({ kind: "worker_changed", workerId });
      return detail(database, workerId);
    },
  );

  app.delete(
    "/api/v2/workers/:worker_id",
    { schema: { params, response: { 204: z.null() }, tags } },
    async (request, reply) => {
      const { worker_id: workerId } = request.params;
      await change(options, request, async (tx) => {
        const { name, state } = await requireWorker(tx, workerId);
        const lost = await removeWorker(tx, workerId);
        if (lost === null) throw ended(workerId, state);
        const details = { id: workerId, name, lost };
        return { result: null, deed: { action: "remove_worker", about: `workers/${workerId}`, details } };
      });
      notify({ kind: "worker_changed", workerId });
      return reply.code(204).send(null);
    },
  );
};

async function detail(connection: Connection, workerId: number): Promise<z.output<typeof detailDocument>> {
  const [row, attempts] = await Promise.all([
    requireWorker(connection, workerId),
    workerAssignments(connection, workerId),
  ]);
  return { ...show(row), attempts: attempts.map(showAttempt) };
}

async function requireWorker(connection: Connection, workerId: number): Promise<WorkerRow> {
  const row = await findWorker(connection, workerId);
  if (row === undefined) throw notFound(`Worker ${workerId} does not exist`);
  return row;
}

async function requireLive(connection: Connection, workerId: number): Promise<WorkerRow> {
  const row = await requireWorker(connection, workerId);
  if (row.state === "dead" || row.state === "stopped") throw ended(workerId, row.state);
  return row;
}

function ended(workerId: number, state: WorkerRow["state"]) {
  return conflict(`Worker ${workerId} has ended (${state}): it runs nothing any more`);
}

function show(row: WorkerRow): z.output<typeof workerDocument> {
  return {
    id: row.id,
    name: row.name,
    hostname: row.hostname,
    pid: row.pid,
    version: row.version,
    state: row.state,
    queues: row.queues === null ? null : [...row.queues],
    labels: { ...row.labels },
    slots: row.slots,
    free_slots: Math.max(0, row.slots - row.running),
    running: row.running,
    start_date: iso(row.started_at),
    end_date: iso(row.ended_at),
    latest_heartbeat: iso(row.heartbeat_at),
    heartbeat_age: row.heartbeat_age_s,
  };
}

function showAttempt(row: WorkerAssignment): z.output<typeof attemptDocument> {
  return {
    id: row.id,
    kind: row.kind,
    dag_id: row.dag_id,
    dag_run_id: row.run_id,
    task_id: row.task_id,
    map_index: row.map_index,
    try_number: row.try_number,
    executor: row.executor,
    queue: row.queue,
    claimed_at: iso(row.claimed_at),
    is_stopping: row.is_stopping,
  };
}
