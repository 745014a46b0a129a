/** Metrics of this process in the text format of Prometheus: CPU, memory, event loop, garbage collection. */
import type { Registry } from "prom-client";

let registry: Promise<Registry> | undefined;

/** Measures from the first call on: a process that no Prometheus scrapes pays nothing. */
export async function processMetrics(): Promise<string> {
  registry ??= import("prom-client").then(({ Registry, collectDefaultMetrics }) => {
    const register = new Registry();
    collectDefaultMetrics({ register });
    return register;
  });
  return (await registry).metrics();
}

/** The content type of that format. */
export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";
