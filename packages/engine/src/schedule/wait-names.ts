/**
 * What a wait is for, in a few words, for whoever reads why it ended. Arguments may hold what is not for every reader
 * (headers, queries, parameters): of each kind only that which names the thing is shown.
 */
import type { Json, TriggerCall } from "@tradewind/sdk/manifest";

type Args = { readonly [name: string]: Json };

const MAX_LENGTH = 200;

const NAMES: Readonly<Record<string, (args: Args) => string>> = {
  "tradewind.file": ({ path }) => `the file ${path}`,
  "tradewind.http": ({ method, url }) => `${method} ${withoutQuery(String(url))}`,
  "tradewind.sql": ({ connection }) => `a query on connection "${connection}"`,
  "tradewind.s3key": ({ bucket, key }) => `s3://${bucket}/${key}`,
  "tradewind.s3prefix": ({ bucket, minCount, prefix }) => `${minCount} objects at s3://${bucket}/${prefix}`,
  "tradewind.process": ({ pid }) => `the end of process ${pid}`,
  "tradewind.rediskey": ({ key }) => `the key ${key} of Redis`,
  "tradewind.redisstream": ({ stream }) => `an entry of the stream ${stream}`,
  "tradewind.dagrun": ({ dagId, logicalDate, runId }) =>
    `run ${runId ?? `of ${logicalDate}`} of DAG ${dagId}`,
  "tradewind.externaltask": ({ dagId, taskId }) => `task ${taskId} of DAG ${dagId}`,
  "tradewind.webhook": ({ name }) => `a call of the webhook ${name}`,
  "tradewind.signal": ({ key, namespace }) => `the signal ${namespace}/${key}`,
  "tradewind.datetime": ({ moment }) => String(moment),
};

/** By call, since a call of a manifest is that of every instance of its task. */
const known = new WeakMap<object, string>();

export function waitName(call: Pick<TriggerCall, "kind" | "args">): string {
  const name = known.get(call) ?? named(call);
  known.set(call, name);
  return name;
}

function named({ args, kind }: Pick<TriggerCall, "kind" | "args">): string {
  const isRecord = typeof args === "object" && args !== null && !Array.isArray(args);
  const name = isRecord ? NAMES[kind]?.(args as Args) : undefined;
  const text = name === undefined ? `the trigger ${kind}` : name;
  return text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH)}…` : text;
}

function withoutQuery(url: string): string {
  return url.split(/[?#]/, 1)[0] ?? "";
}
