/**
 * `GET /metrics`: the installation and this process, in the text format of Prometheus. Every API server shows the same
 * installation.
 */
import { z } from "zod";
import { METRICS_TYPE, processMetrics } from "../../service/process-metrics.ts";
import type { Resource } from "../server/context.ts";
import { METRICS } from "./installation-metrics.ts";
import { type MetricFacts, readFacts } from "./metric-facts.ts";

/** Scrapes within this time share one reading. */
const FRESH_MS = 1_000;

export const metrics: Resource = (app, { config, database }) => {
  let reading: { readonly text: Promise<string>; readonly at: number } | undefined;
  const read = () => {
    if (reading !== undefined && performance.now() - reading.at < FRESH_MS) return reading.text;
    const text = readFacts(database).then((facts) => installationText(facts, config.version));
    reading = { text, at: performance.now() };
    text.catch(() => {
      if (reading?.text === text) reading = undefined;
    });
    return text;
  };
  app.get(
    "/metrics",
    {
      config: { metrics: true },
      schema: { response: { 200: z.string() }, tags: ["Monitor"], summary: "Metrics for Prometheus" },
    },
    async (_, reply) => {
      const texts = await Promise.all([read(), processMetrics()]);
      return reply.type(METRICS_TYPE).send(texts.join("\n"));
    },
  );
};

async function installationText(facts: MetricFacts, version: string): Promise<string> {
  const { Gauge, Registry } = await import("prom-client");
  const registry = new Registry();
  const registers = [registry];
  new Gauge({
    name: "tradewind_info",
    help: "The version of the API server; 1.",
    labelNames: ["version"],
    registers,
  }).set({ version }, 1);
  for (const { help, labels, name, samples } of METRICS) {
    const gauge = new Gauge({ name, help, labelNames: [...labels], registers });
    for (const [labelled, value] of samples(facts)) gauge.set(labelled, value);
  }
  return registry.metrics();
}
