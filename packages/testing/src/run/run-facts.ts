/** The facts of a test run, from its options. */
import type { Json } from "@tradewind/sdk";
import { unknownConfKeys } from "@tradewind/sdk/conf-keys";
import type { DagManifest } from "@tradewind/sdk/manifest";
import type { ConnectionFacts, RunFacts } from "@tradewind/sdk/program";
import { DagTestError } from "../errors.ts";
import { isoOption } from "../moment.ts";
import type { RunOptions } from "../options.ts";

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

/** The conf as it would arrive over the API: a JSON copy, without keys that the DAG's params do not declare. */
export function confOf(options: RunOptions, { dagId, paramsSchema }: DagManifest): Json {
  const conf = jsonOf(options.conf ?? {});
  const [unknown] = unknownConfKeys(paramsSchema, conf);
  if (unknown === undefined) return conf;
  throw new DagTestError("TW_TEST_BAD_OPTION", `conf.${unknown.key} of dag "${dagId}" ${unknown.problem}`);
}

function jsonOf(conf: unknown): Json {
  try {
    return JSON.parse(JSON.stringify(conf)) as Json;
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
