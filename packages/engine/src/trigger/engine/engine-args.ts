/**
 * The arguments of triggers that wait for something in this database. One statement serves all waits of a kind, so a
 * single value that PostgreSQL rejects would fail the statement for all of them. Arguments are therefore validated
 * first, and invalid ones fail only their own trigger.
 */
import type { DagRunArgs, ExternalTaskArgs, SignalArgs, WebhookArgs } from "@tradewind/sdk/builtin-triggers";
import type { Json } from "@tradewind/sdk/manifest";
import {
  json,
  list,
  Misfit,
  members,
  orNull,
  type Reader,
  text,
  whole,
} from "../../builtin/argument-readers.ts";
import { badArguments } from "../../builtin/trigger-error.ts";
import { RUN_KIND, SIGNAL_KIND, TASK_KIND, WEBHOOK_KIND } from "../../model/trigger/engine-kinds.ts";
import { isMoment } from "../../model/trigger/trigger-call.ts";

const MAX_INTEGER = 2 ** 31 - 1;

/** Compared with the database's format: JavaScript also accepts February 30. */
const moment: Reader<string> = (value) => {
  if (!isMoment(value)) throw new Misfit(["has to be an ISO instant"]);
  return new Date(value).toISOString();
};

const key: Reader<string> = (value) => {
  if (text(value).includes("\u0000")) throw new Misfit(["must not contain U+0000"]);
  return text(value);
};

const index: Reader<number> = (value) => {
  if (whole(0)(value) > MAX_INTEGER) throw new Misfit([`has to be at most ${MAX_INTEGER}`]);
  return whole(0)(value);
};

const run = { dagId: key, runId: orNull(key), logicalDate: orNull(moment) };

/** Leaves out a `missing` that is undefined, so that stored waits keep their form. */
const runArgs: Reader<DagRunArgs> = (value) => {
  const { missing, ...others } = Object(value) as Record<string, unknown>;
  if (missing !== undefined && missing !== "fail") throw new Misfit(['missing: has to be "fail"']);
  const read = members<Omit<DagRunArgs, "missing">>({
    ...run,
    states: list(text) as Reader<DagRunArgs["states"]>,
  });
  return { ...read(missing === undefined ? value : others), ...(missing && { missing }) };
};

const READERS: Readonly<Record<string, Reader<object>>> = {
  [RUN_KIND]: runArgs,
  [TASK_KIND]: members<ExternalTaskArgs>({
    ...run,
    taskId: key,
    mapIndex: orNull(index),
    states: list(text) as Reader<ExternalTaskArgs["states"]>,
    failedStates: list(text) as Reader<ExternalTaskArgs["failedStates"]>,
  }),
  [WEBHOOK_KIND]: members<WebhookArgs>({ name: key, after: orNull(moment) }),
  [SIGNAL_KIND]: members<SignalArgs>({
    namespace: key,
    key,
    where: orNull(json),
    equals: orNull(members<NonNullable<SignalArgs["equals"]>>({ value: json })),
    inRun: orNull(members<NonNullable<SignalArgs["inRun"]>>({ dagId: key, runId: key })),
    since: orNull(moment),
    after: orNull(whole(0)),
  }),
};

/** @throws TriggerRefusal that names the invalid argument. */
export function engineArgs(kind: string, args: Json): Json {
  try {
    return (READERS[kind]?.(args) ?? args) as Json;
  } catch (error) {
    if (error instanceof Misfit) throw badArguments(kind, error.message);
    throw error;
  }
}
