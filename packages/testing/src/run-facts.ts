/** The facts of a test run, from its options. */
import type { Json } from "@tradewind/sdk";
import type { ConnectionFacts, RunFacts } from "@tradewind/sdk/program";
import { DagTestError } from "./errors.ts";
import type { RunOptions } from "./options.ts";

export function runFacts(dagId: string, startedAt: number, options: RunOptions): RunFacts {
  const started = new Date(startedAt).toISOString();
  const logicalDate =
    options.logicalDate === null
      ? null
      : options.logicalDate === undefined
        ? started
        : iso("logicalDate", options.logicalDate);
  return {
    dagId,
    runId: `manual__${logicalDate ?? started}`,
    runType: "manual",
    logicalDate,
    intervalStart: options.dataInterval ? iso("dataInterval.start", options.dataInterval.start) : logicalDate,
    intervalEnd: options.dataInterval ? iso("dataInterval.end", options.dataInterval.end) : logicalDate,
    runAfter: logicalDate ?? started,
    startedAt: started,
    version: 1,
  };
}

export function startOf(options: RunOptions): number {
  return options.now === undefined ? Date.now() : Date.parse(iso("now", options.now));
}

/** As it would arrive over the API: a copy, and only JSON. */
export function confOf(options: RunOptions): Json {
  if (options.conf === undefined) return {};
  try {
    return JSON.parse(JSON.stringify(options.conf)) as Json;
  } catch (cause) {
    throw new DagTestError("TW_TEST_BAD_OPTION", `conf must be JSON: ${String(cause)}`);
  }
}

export function connectionOf(options: RunOptions, id: string): ConnectionFacts | undefined {
  const given = options.connections?.[id];
  const empty = {
    type: "generic",
    host: null,
    port: null,
    login: null,
    password: null,
    schema: null,
    extra: {},
  };
  return given && { ...empty, ...given, id };
}

function iso(name: string, value: Date | string): string {
  const date = new Date(value);
  if (!Number.isNaN(date.getTime())) return date.toISOString();
  throw new DagTestError("TW_TEST_BAD_OPTION", `${name} must be a Date or an ISO text, got ${String(value)}`);
}
