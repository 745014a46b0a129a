/**
 * The task execution API, version 1: everything that a worker needs, so that it reaches neither the database nor the keys.
 * Its calls are batched: a busy worker makes a few requests per second, not several per task.
 */
import type { Resource } from "../server/context.ts";
import { bundles } from "./bundles.ts";
import { claims } from "./claims.ts";
import { executionLogs } from "./logs.ts";
import { executionOutputs } from "./outputs.ts";
import { reports } from "./reports.ts";
import { requests } from "./requests.ts";
import { executionWorkers } from "./workers.ts";

export const execution: Resource = (app, options) => {
  if (options.execution === undefined) return;
  const { answer, fetchBundle, outputs } = options.execution;
  for (const resource of [
    executionWorkers(outputs.limits),
    claims,
    reports,
    requests(answer),
    executionLogs,
    executionOutputs(outputs),
    bundles(fetchBundle),
  ])
    resource(app, options);
};
