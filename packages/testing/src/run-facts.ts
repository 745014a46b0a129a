/** The facts of a test run, from its options. */
import type { Json } from "@tradewind/sdk";
import type { ConnectionFacts, RunFacts } from "@tradewind/sdk/program";
import { DagTestError } from "./errors.ts";
import { isoOption } from "./moment.ts";
import type { RunOptions } from "./options.ts";

export function runFacts(dagId: string, startedAt: number, options: RunOptions): RunFacts {
  const started = new Date(startedAt).toISOString();
  const logicalDate =
    options.logicalDate === null
      ? null
      : options.logicalDate === undefined
        ? started
        : isoOption("logicalDate", options.logicalDate);
  return {
    dagId,
    runId: `manual__${logicalDate ?? started}`,
    runType: "manual",
    logicalDate,
    intervalStart: options.dataInterval
      ? isoOption("dataInterval.start", options.dataInterval.start)
      : logicalDate,
    intervalEnd: options.dataInterval ? isoOption("dataInterval.end", options.dataInterval.end) : logicalDate,
    runAfter: logicalDate ?? started,
    startedAt: started,
    version: 1,
  };
}

export function startOf(options: RunOptions): number {
  return options.now === undefined ? Date.now() : Date.parse(isoOption("now", options.now));
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
