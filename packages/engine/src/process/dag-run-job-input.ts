/** Validates the input of a `DagRunJob`: TypeScript does not check programs in JavaScript, or values from JSON. */
import { inspect, types } from "node:util";
import { nearest } from "@tradewind/sdk/wording";
import { EngineError } from "../service/errors.ts";
import type { DagRunJobOptions, RunRequest } from "./dag-run-job.ts";

type Members = Readonly<Record<string, unknown>>;

const OPTIONS = {
  databaseUrl: "string",
  home: "string",
  maxActive: "number",
  parallelism: "number",
  logLevel: "string",
} as const satisfies Record<keyof DagRunJobOptions, string>;

const RUN_KEYS = ["dagId", "runId", "logicalDate", "dataInterval", "conf"];
const MAX_SHOWN = 80;

/** `resolveConfig` checks ranges and words, as for the settings of services. */
export function checkOptions(options: unknown): void {
  const refuse = (message: string) => new EngineError("CONFIG_INVALID", `DagRunJob.open: ${message}`);
  if (!isObject(options)) throw refuse(`the options are ${show(options)}: they must be an object.`);
  const unknown = unknownKey(options, Object.keys(OPTIONS));
  if (unknown) throw refuse(`unknown option ${unknown}`);
  for (const [name, type] of Object.entries(OPTIONS)) {
    const value = options[name];
    if (value === undefined || typeof value === type) continue;
    // A database URL contains a password.
    const shown = name === "databaseUrl" ? "has a wrong type" : `is ${show(value)}`;
    throw refuse(`${name} ${shown}: it must be a ${type}. Leave it out for the default.`);
  }
  const { maxActive } = options;
  if (maxActive !== undefined && !(Number.isInteger(maxActive) && (maxActive as number) > 0))
    throw refuse(`maxActive is ${show(maxActive)}: it must be a whole number from 1.`);
}

/** The runs as a list. */
export function checkedRuns(runs: unknown): RunRequest[] {
  if (typeof (runs as Iterable<unknown> | null | undefined)?.[Symbol.iterator] !== "function")
    throw invalid(
      "runs",
      runs,
      "an array or another iterable of runs",
      "Submit a single run as submit([run]).",
    );
  const requests = [...(runs as Iterable<unknown>)];
  for (const [at, run] of requests.entries()) checkRun(run, `runs[${at}]`);
  return requests as RunRequest[];
}

function checkRun(run: unknown, where: string): void {
  if (!isObject(run)) throw invalid(where, run, "an object", 'Give at least its DAG: { dagId: "sales" }.');
  refuseUnknown(run, RUN_KEYS, where);
  const { conf, dagId, dataInterval, logicalDate } = run;
  if (!isText(dagId)) throw invalid(`${where}.dagId`, dagId, "a non-empty string", "Give the id of the DAG.");
  if ("runId" in run) {
    if (!isText(run["runId"]))
      throw invalid(`${where}.runId`, run["runId"], "a non-empty string", "Leave it out to create a run.");
    const extra = RUN_KEYS.slice(2).find((key) => run[key] !== undefined);
    if (extra)
      throw new EngineError(
        "DAG_RUN_INVALID",
        `${where} has a runId and ${extra}: an existing run keeps its ${extra}. Leave out ${extra}, or leave out runId to create a run.`,
      );
    return;
  }
  if (logicalDate !== undefined) checkDate(logicalDate, `${where}.logicalDate`);
  if (dataInterval !== undefined) checkInterval(dataInterval, `${where}.dataInterval`);
  if (conf !== undefined) checkConf(conf, `${where}.conf`);
}

function checkInterval(interval: unknown, where: string): void {
  if (!isObject(interval)) throw invalid(where, interval, "an object", "Give { start, end }, two Dates.");
  refuseUnknown(interval, ["start", "end"], where);
  const { end, start } = interval;
  checkDate(start, `${where}.start`);
  checkDate(end, `${where}.end`);
  if ((start as Date) > (end as Date))
    throw invalid(`${where}.end`, end, `no earlier than start, ${show(start)}`, "Exchange the two.");
}

function checkDate(value: unknown, where: string): void {
  if (types.isDate(value) && !Number.isNaN(value.getTime())) return;
  const isReadable = typeof value === "string" && !Number.isNaN(Date.parse(value));
  const example = isReadable ? show(value).replaceAll("'", '"') : '"2026-01-31"';
  throw invalid(where, value, "a valid Date", `Write new Date(${example}).`);
}

/** A conf is stored when its run starts, which is too late to reject the call. */
function checkConf(conf: unknown, where: string): void {
  if (!isObject(conf)) throw invalid(where, conf, "an object", "Give the params by name.");
  try {
    JSON.stringify(conf);
  } catch (cause) {
    throw new EngineError("DAG_RUN_INVALID", `${where} cannot be stored as JSON: ${String(cause)}.`, {
      cause,
    });
  }
}

function refuseUnknown(value: Members, known: readonly string[], where: string): void {
  const unknown = unknownKey(value, known);
  if (unknown) throw new EngineError("DAG_RUN_INVALID", `${where}: unknown key ${unknown}`);
}

function unknownKey(value: Members, known: readonly string[]): string | undefined {
  const name = Object.keys(value).find((key) => !known.includes(key));
  if (name === undefined) return undefined;
  const near = nearest(name, known);
  return `"${name}". ${near ? `Did you mean "${near}"?` : `Known: ${known.join(", ")}.`}`;
}

function invalid(where: string, value: unknown, wanted: string, remedy: string): EngineError {
  return new EngineError("DAG_RUN_INVALID", `${where} is ${show(value)}: it must be ${wanted}. ${remedy}`);
}

function isObject(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function show(value: unknown): string {
  const text = inspect(value, { depth: 0, breakLength: Number.POSITIVE_INFINITY, compact: true });
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN - 3)}...` : text;
}
