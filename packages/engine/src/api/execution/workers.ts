/** `/execution/v1/workers`: registration, heartbeat and end of a worker. */
import { z } from "zod";
import type { OutputLimits } from "../../output/output-limits.ts";
import type { Database } from "../../store/database/database.ts";
import { isWorkerRemoved } from "../../store/execute/worker-edits.ts";
import {
  endWorkers,
  registerWorker,
  renewWorker,
  type WorkerProtocol,
  workerOrders,
} from "../../store/execute/workers.ts";
import { principalOf } from "../server/auth.ts";
import type { ApiApp, ApiOptions, Resource } from "../server/context.ts";
import { int } from "../server/fields.ts";
import { Problem } from "../server/problem.ts";
import { ExecutionAccess, executionRoute } from "./execution-access.ts";
import { OrderWatch } from "./order-watch.ts";

/** A worker is lost when it has sent no heartbeat for this long. */
const WORKER_LEASE_MS = 20_000;
/** The part of the lease for which a heartbeat is held while there is nothing to say; the worker sends the next one at once. */
const HOLD = 0.2;
/** The protocol between API and workers. It changes only when older workers cannot be served any more. */
const EXECUTION_PROTOCOL = 1;

const name = z.string().min(1).max(250);
const uuid = z.uuid();

const registerBody = z.strictObject({
  name,
  hostname: z.string().max(255),
  pid: int(0),
  version: z.string().max(100),
  protocol: int(0),
  slots: int(1, 10_000),
  queues: z
    .array(name)
    .min(1)
    .max(100)
    .optional()
    .describe("It claims assignments of these only; default: default. Left out by the worker of a pod."),
  labels: z.record(z.string().max(100), z.string().max(250)).default({}),
});

const registered = z.object({
  worker: z.number().describe("Its id in all other calls."),
  lease_ms: z.number().describe("Without a heartbeat for this long, the worker is declared dead."),
  output_limits: z
    .object({ inline: z.number(), most: z.number() })
    .describe(
      "An output with more than `inline` characters of JSON is stored with POST /execution/v1/outputs; one with more than `most` bytes fails its task.",
    ),
});

const heartbeatBody = z.strictObject({
  assignments: z
    .array(uuid)
    .max(100_000)
    .describe("Those that it has claimed and whose end is not reported."),
  stopping: z.array(uuid).max(100_000).default([]).describe("Those among them that it is stopping already."),
  free_slots: int(0, 10_000).default(0),
  is_draining: z.boolean().default(false).describe("It knows that it is to start nothing more."),
  is_stopping: z
    .boolean()
    .default(false)
    .describe("It was asked to stop on its own machine: it starts nothing more."),
});

const orders = z.object({
  cancels: z
    .array(z.object({ id: z.string(), cancel: z.any() }))
    .describe("To be stopped: abort, then kill after `graceMs`; then report the end."),
  superseded: z.array(z.string()).describe("These do not count any more: to be stopped."),
  unknown: z.array(z.string()).describe("Claimed by this worker, and not in its list: to be claimed again."),
  is_draining: z.boolean().describe("It is to start nothing more."),
});

const params = z.object({ worker_id: int(1) });

export function executionWorkers(limits: OutputLimits): Resource {
  return (app, options) => register(app, options, limits);
}

function register(app: ApiApp, options: ApiOptions, limits: OutputLimits): void {
  const { database, wakeUps } = options;
  const leaseMs = options.execution?.workerLeaseMs ?? WORKER_LEASE_MS;
  const tags = ["Task execution"];
  const access = new ExecutionAccess(options);
  const watch = new OrderWatch(wakeUps);
  app.addHook("preClose", async () => watch.close());

  app.post(
    "/execution/v1/workers",
    {
      config: executionRoute(options),
      schema: {
        body: registerBody,
        response: { 201: registered },
        tags,
        summary: "Register a worker",
      },
    },
    async (request, reply) => {
      const { queues = null, ...worker } = request.body;
      requireProtocol(worker, options);
      const { assignment = null } = principalOf(request);
      const id = await registerWorker(
        database,
        { ...worker, queues: assignment === null ? (queues ?? ["default"]) : null },
        { leaseMs, tokenId: access.tokenOf(request), assignment },
      );
      reply.code(201);
      return { worker: id, lease_ms: leaseMs, output_limits: limits };
    },
  );

  app.post(
    "/execution/v1/workers/:worker_id/heartbeat",
    {
      config: executionRoute(options),
      bodyLimit: 8 * 1024 * 1024,
      schema: {
        ...{ params, body: heartbeatBody, response: { 200: orders }, tags },
        summary: "Renew the lease of a worker; held until there is something to do",
      },
    },
    async (request) => {
      const worker = request.params.worker_id;
      const { assignments, is_draining: knowsDrain, stopping } = request.body;
      await access.requireWorker(request, worker);
      const { free_slots: freeSlots, is_stopping: isStopping } = request.body;
      const renewed = await renewWorker(database, worker, { leaseMs, freeSlots, isStopping });
      if (renewed === undefined) throw await gone(database, worker);
      // An earlier version of this server may have registered it.
      requireProtocol(renewed, options);
      const known = new Set(stopping);
      const until = performance.now() + HOLD * leaseMs;
      for (;;) {
        const seen = watch.mark();
        const found = await workerOrders(database, worker, assignments);
        if (found === undefined) throw await gone(database, worker);
        const cancels = found.cancels.filter(({ id }) => !known.has(id));
        const superseded = found.superseded.filter((id) => !known.has(id));
        const { isDraining } = found;
        const unknown = [...found.unknown];
        const answer = { cancels, superseded, unknown, is_draining: isDraining };
        const isNews = cancels.length + superseded.length + unknown.length > 0 || isDraining !== knowsDrain;
        const left = until - performance.now();
        if (isNews || left <= 0 || app.closing.aborted) return answer;
        await watch.after(seen, left);
      }
    },
  );

  app.delete(
    "/execution/v1/workers/:worker_id",
    {
      config: executionRoute(options),
      schema: { params, response: { 204: z.null() }, tags, summary: "Sign off: its assignments are lost" },
    },
    async (request, reply) => {
      const worker = request.params.worker_id;
      await access.requireWorker(request, worker);
      await endWorkers(database, [worker], "stopped");
      return reply.code(204).send(null);
    },
  );
}

/** @throws Problem for a worker that this server cannot serve. */
function requireProtocol({ name, protocol, version }: WorkerProtocol, { config }: ApiOptions): void {
  if (protocol === EXECUTION_PROTOCOL) return;
  throw new Problem(
    409,
    "WORKER_VERSION",
    `Worker "${name}" (${version}) speaks protocol ${protocol} of the task execution API, this server (${config.version}) speaks ${EXECUTION_PROTOCOL}: update the ${protocol < EXECUTION_PROTOCOL ? "worker" : "server"}`,
  );
}

async function gone(database: Database, worker: number): Promise<Problem> {
  if (await isWorkerRemoved(database, worker))
    return new Problem(
      410,
      "WORKER_REMOVED",
      `Worker ${worker} was removed: its assignments are started again elsewhere. Stop it; started again, it is a new worker`,
    );
  return new Problem(
    410,
    "WORKER_EXPIRED",
    `Worker ${worker} was declared dead: its assignments are started again elsewhere. Register again`,
  );
}
