/**
 * The REST API: Airflow's paths and JSON under /api/v2. Each resource has its own file; the rules here apply to all: a token
 * unless the route is open, JSON in and out, validated both ways, one error format, headers against content sniffing and caching.
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
import { isValidCredential } from "../../store/access/web-sessions.ts";
import { eventLogs } from "../access/event-logs.ts";
import { tokens } from "../access/tokens.ts";
import { approvals } from "../approval/approvals.ts";
import { assets } from "../asset/assets.ts";
import { backfills } from "../backfill/backfills.ts";
import { dagVersionDiff } from "../dag/dag-version-diff.ts";
import { dagVersions } from "../dag/dag-versions.ts";
import { dags } from "../dag/dags.ts";
import { importErrors } from "../dag/import-errors.ts";
import { tasks } from "../dag/tasks.ts";
import { EXECUTION_TAG, execution } from "../execution/execution.ts";
import { executors } from "../job/executors.ts";
import { jobs } from "../job/jobs.ts";
import { workers } from "../job/workers.ts";
import { metrics } from "../metrics/metrics.ts";
import { deadlines } from "../notify/deadlines.ts";
import { deliveries } from "../notify/deliveries.ts";
import { dagRunEdits } from "../run/dag-run-edits.ts";
import { dagRuns } from "../run/dag-runs.ts";
import { runLogStream } from "../run/run-log-stream.ts";
import { runLogs } from "../run/run-logs.ts";
import { runTimeline } from "../run/run-timeline.ts";
import { runWait } from "../run/run-wait.ts";
import { connections } from "../settings/connections.ts";
import { pools } from "../settings/pools.ts";
import { variables } from "../settings/variables.ts";
import { conditions } from "../signal/conditions.ts";
import { signalEffects } from "../signal/signal-effects.ts";
import { signals } from "../signal/signals.ts";
import { signalListeners } from "../signal/signals-listeners.ts";
import { manualCommands } from "../task/manual-commands.ts";
import { taskInstanceEdits } from "../task/task-instance-edits.ts";
import { taskInstances } from "../task/task-instances.ts";
import { taskLogs } from "../task/task-logs.ts";
import { xcomEntries } from "../task/xcom-entries.ts";
import { deferrals } from "../trigger/deferrals.ts";
import { triggers } from "../trigger/triggers.ts";
import { waiting } from "../trigger/waiting.ts";
import { webhooks } from "../trigger/webhooks.ts";
import { UI_TAG } from "../ui/columns.ts";
import { UI_RESOURCES } from "../ui/resources.ts";
import { pages } from "../web/pages.ts";
import { session } from "../web/session.ts";
import { why } from "../why/why.ts";
import { requireToken } from "./auth.ts";
import { basePathOf, withoutBasePath } from "./base-path.ts";
import { limitBodyTime } from "./body-time.ts";
import { compressAnswers } from "./compression.ts";
import type { ApiApp, ApiOptions, Resource } from "./context.ts";
import { DiskSpace } from "./disk-space.ts";
import { health } from "./health.ts";
import { ignoreUnknownParameters } from "./ignored-parameters.ts";
import { InFlight } from "./in-flight.ts";
import { parseJsonBody, textOfBody } from "./json-body.ts";
import { mapIndex } from "./map-index.ts";
import { openApi } from "./open-api.ts";
import {
  errorHandler,
  notFound,
  Problem,
  problemDocument,
  sendProblem,
  validatorCompiler,
} from "./problem.ts";
import { SESSION_COOKIE } from "./session-cookie.ts";
import { prepareStreams } from "./streaming.ts";
import { version } from "./version.ts";

const RESOURCES: readonly Resource[] = [
  approvals,
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
  execution,
  executors,
  health,
  importErrors,
  jobs,
  mapIndex,
  openApi,
  pages,
  pools,
  runLogStream,
  runLogs,
  runTimeline,
  runWait,
  session,
  signalEffects,
  signalListeners,
  signals,
  taskInstanceEdits,
  taskInstances,
  taskLogs,
  manualCommands,
  metrics,
  tasks,
  tokens,
  triggers,
  variables,
  version,
  waiting,
  webhooks,
  why,
  workers,
  xcomEntries,
  ...UI_RESOURCES,
];

const BODY_LIMIT = 1024 * 1024;

/** Of every response, unless its route has set others. */
const HEADERS = [
  ["x-content-type-options", "nosniff"],
  ["cache-control", "no-store"],
  ["content-security-policy", "default-src 'none'; frame-ancestors 'none'"],
  ["referrer-policy", "no-referrer"],
] as const;

export async function createApi(options: ApiOptions): Promise<FastifyInstance> {
  const basePath = basePathOf(options.config.publicUrl);
  const app = fastify({
    bodyLimit: BODY_LIMIT,
    // Like GET without a body; streams check for HEAD and do not start.
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
    rewriteUrl: ({ url = "/" }) => slashesInNames(withoutBasePath(url, basePath)),
    // Limited per route: see limitBodyTime.
    requestTimeout: 0,
    // Longer than any id, so that the schema rejects it and not the router.
    routerOptions: { maxParamLength: 4096 },
  }).withTypeProvider<ZodTypeProvider>();

  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  app.setErrorHandler(errorHandler(options.logger, DiskSpace.observe(app as never).onProblem));
  app.decorateRequest("principal", null);
  acceptJsonOnly(app);
  prepareStreams(app, (secret) => isValidCredential(options.database, secret));
  InFlight.observe(app);
  limitBodyTime(app as never);
  app.addHook("onRequest", requireToken(options.database, options.config.publicUrl));
  ignoreUnknownParameters(app);
  app.addHook("onSend", async (_request, reply) => {
    for (const [name, value] of HEADERS) if (!reply.hasHeader(name)) reply.header(name, value);
    reply.header("x-request-id", reply.request.id);
    if (app.closing.aborted) reply.header("connection", "close");
  });
  compressAnswers(app);
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
      components: {
        securitySchemes: {
          bearer: { type: "http", scheme: "bearer" },
          session: { type: "apiKey", in: "cookie", name: SESSION_COOKIE },
        },
      },
      security: [{ bearer: [] }, { session: [] }],
      tags: [EXECUTION_TAG, UI_TAG],
    },
    transform: jsonSchemaTransform,
    transformObject: jsonSchemaTransformObject,
  });
  app.addHook("onRoute", ({ schema }) => {
    const response = schema?.response as Record<string, unknown> | undefined;
    if (response !== undefined) response["4xx"] ??= problemDocument;
  });
  // After the OpenAPI plugin, which must see every route.
  await app.register(async (scope) => {
    for (const resource of RESOURCES) resource(scope as ApiApp, options);
  });
  await app.ready();
  return app as unknown as FastifyInstance;
}

/** Names of variables and pools may contain slashes, which Airflow's clients do not encode. */
function slashesInNames(url: string): string {
  const [, start, name, query] = /^(\/api\/v2\/(?:variables|pools)\/)([^?]+)(.*)$/s.exec(url) ?? [];
  return start === undefined || name === undefined ? url : `${start}${name.replaceAll("/", "%2F")}${query}`;
}

/** Other content types get a 415, which keeps the attack surface small. */
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
