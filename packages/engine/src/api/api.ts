/**
 * The REST API, put together: Airflow's paths and JSON under /api/v2. Resources are one file each; here are the rules
 * that hold for all of them: a token for everything that does not say otherwise, JSON in and out, checked both ways,
 * one form of error, headers that keep browsers from guessing and caches from keeping.
 */
import { randomUUID } from "node:crypto";
import swagger from "@fastify/swagger";
import { type FastifyInstance, fastify } from "fastify";
import {
  jsonSchemaTransform,
  jsonSchemaTransformObject,
  serializerCompiler,
  type ZodTypeProvider,
} from "fastify-type-provider-zod";
import { findToken } from "../store/tokens.ts";
import { assets } from "./assets.ts";
import { requireToken } from "./auth.ts";
import { backfills } from "./backfills.ts";
import { conditions } from "./conditions.ts";
import { connections } from "./connections.ts";
import type { ApiApp, ApiOptions, Resource } from "./context.ts";
import { dagRunEdits } from "./dag-run-edits.ts";
import { dagRuns } from "./dag-runs.ts";
import { dagVersionDiff } from "./dag-version-diff.ts";
import { dagVersions } from "./dag-versions.ts";
import { dags } from "./dags.ts";
import { deadlines } from "./deadlines.ts";
import { deferrals } from "./deferrals.ts";
import { deliveries } from "./deliveries.ts";
import { DiskSpace } from "./disk-space.ts";
import { eventLogs } from "./event-logs.ts";
import { health } from "./health.ts";
import { ignoreUnknownParameters } from "./ignored-parameters.ts";
import { importErrors } from "./import-errors.ts";
import { InFlight } from "./in-flight.ts";
import { jobs } from "./jobs.ts";
import { parseJsonBody, textOfBody } from "./json-body.ts";
import { mapIndex } from "./map-index.ts";
import { openApi } from "./open-api.ts";
import { pools } from "./pools.ts";
import {
  errorHandler,
  notFound,
  Problem,
  problemDocument,
  sendProblem,
  validatorCompiler,
} from "./problem.ts";
import { runLogStream } from "./run-log-stream.ts";
import { runLogs } from "./run-logs.ts";
import { runWait } from "./run-wait.ts";
import { signals } from "./signals.ts";
import { signalListeners } from "./signals-listeners.ts";
import { prepareStreams } from "./streaming.ts";
import { taskInstanceEdits } from "./task-instance-edits.ts";
import { taskInstances } from "./task-instances.ts";
import { taskLogs } from "./task-logs.ts";
import { taskOrders } from "./task-orders.ts";
import { tasks } from "./tasks.ts";
import { tokens } from "./tokens.ts";
import { triggers } from "./triggers.ts";
import { variables } from "./variables.ts";
import { version } from "./version.ts";
import { waiting } from "./waiting.ts";
import { webhooks } from "./webhooks.ts";
import { welcome } from "./welcome.ts";
import { why } from "./why.ts";
import { xcomEntries } from "./xcom-entries.ts";

const RESOURCES: readonly Resource[] = [
  assets,
  backfills,
  conditions,
  connections,
  dagRunEdits,
  dagRuns,
  dagVersionDiff,
  dagVersions,
  dags,
  deadlines,
  deliveries,
  deferrals,
  eventLogs,
  health,
  importErrors,
  jobs,
  mapIndex,
  openApi,
  pools,
  runLogStream,
  runLogs,
  runWait,
  signalListeners,
  signals,
  taskInstanceEdits,
  taskInstances,
  taskLogs,
  taskOrders,
  tasks,
  tokens,
  triggers,
  variables,
  version,
  waiting,
  webhooks,
  welcome,
  why,
  xcomEntries,
];

const BODY_LIMIT = 1024 * 1024;

export async function createApi(options: ApiOptions): Promise<FastifyInstance> {
  const app = fastify({
    bodyLimit: BODY_LIMIT,
    // As its GET, without the body; streams know of it and do not begin.
    exposeHeadRoutes: true,
    forceCloseConnections: "idle",
    frameworkErrors: (_error, _request, reply) => {
      sendProblem(
        reply as never,
        new Problem(400, "BAD_REQUEST", "The URL is not valid: check its percent-encoding and length"),
      );
    },
    genReqId: () => randomUUID(),
    logger: false,
    rewriteUrl: ({ url = "/" }) => slashesInNames(url),
    requestTimeout: 60_000,
    // Longer than any id may be, so that the schema refuses it and not the router.
    routerOptions: { maxParamLength: 4096 },
  }).withTypeProvider<ZodTypeProvider>();

  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  app.setErrorHandler(errorHandler(options.logger, DiskSpace.observe(app as never).onProblem));
  app.decorateRequest("principal", null);
  acceptJsonOnly(app);
  prepareStreams(app, async (token) => (await findToken(options.database, token)) !== undefined);
  InFlight.observe(app);
  app.addHook("onRequest", requireToken(options.database));
  ignoreUnknownParameters(app);
  app.addHook("onSend", async (_request, reply) => {
    reply.header("x-content-type-options", "nosniff");
    reply.header("cache-control", "no-store");
    reply.header("content-security-policy", "default-src 'none'; frame-ancestors 'none'");
    reply.header("referrer-policy", "no-referrer");
    reply.header("x-request-id", reply.request.id);
    if (app.closing.aborted) reply.header("connection", "close");
  });
  app.setNotFoundHandler((request, reply) =>
    sendProblem(reply, notFound(`There is no ${request.method} ${request.url.split("?")[0]}`)),
  );

  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Tradewind API",
        version: options.config.version,
        description: "Airflow 3's public API, served by Tradewind.",
      },
      components: { securitySchemes: { bearer: { type: "http", scheme: "bearer" } } },
      security: [{ bearer: [] }],
    },
    transform: jsonSchemaTransform,
    transformObject: jsonSchemaTransformObject,
  });
  app.addHook("onRoute", ({ schema }) => {
    const response = schema?.response as Record<string, unknown> | undefined;
    if (response !== undefined) response["4xx"] ??= problemDocument;
  });
  // After the OpenAPI plugin, so that it sees every route.
  await app.register(async (scope) => {
    for (const resource of RESOURCES) resource(scope as ApiApp, options);
  });
  await app.ready();
  return app as unknown as FastifyInstance;
}

/** Names of variables and pools may contain slashes, and Airflow's clients do not encode them. */
function slashesInNames(url: string): string {
  const [, start, name, query] = /^(\/api\/v2\/(?:variables|pools)\/)([^?]+)(.*)$/s.exec(url) ?? [];
  return start === undefined || name === undefined ? url : `${start}${name.replaceAll("/", "%2F")}${query}`;
}

/** Every other content type is a 415; no parser means nothing to attack. */
function acceptJsonOnly(app: ApiApp): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    ["application/json", "application/merge-patch+json"],
    { parseAs: "buffer" },
    (_request, body, done) => {
      try {
        done(null, parseJsonBody(textOfBody(body as Buffer)));
      } catch (error) {
        done(error as Error, undefined);
      }
    },
  );
}
