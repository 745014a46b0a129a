/**
 * The triggers that the engine itself runs: what is stored of each (its arguments, checked and with all defaults
 * filled in, so that equal waits look equal) and what it fires with. The classes of the same names write these
 * arguments; the engine reads them. Instants are ISO texts in UTC, lengths of time whole milliseconds.
 *
 * A trigger that asks the outside world again and again does so every `intervalMs`, the first time at once.
 */
import type { Json, TriggerCall } from "../manifest.ts";

/** Every built-in kind, with its stored arguments and its event. */
export interface BuiltinTriggers {
  "tradewind.datetime": { readonly args: DateTimeArgs; readonly event: MomentEvent };
  "tradewind.timedelta": { readonly args: TimeDeltaArgs; readonly event: MomentEvent };
  "tradewind.file": { readonly args: FileArgs; readonly event: FileEvent };
  "tradewind.http": { readonly args: HttpArgs; readonly event: HttpEvent };
  "tradewind.sql": { readonly args: SqlArgs; readonly event: SqlEvent };
  "tradewind.dagrun": { readonly args: DagRunArgs; readonly event: DagRunEvent };
  "tradewind.externaltask": { readonly args: ExternalTaskArgs; readonly event: ExternalTaskEvent };
  "tradewind.s3key": { readonly args: S3KeyArgs; readonly event: S3KeyEvent };
  "tradewind.s3prefix": { readonly args: S3PrefixArgs; readonly event: S3PrefixEvent };
  "tradewind.process": { readonly args: ProcessArgs; readonly event: ProcessEvent };
  "tradewind.webhook": { readonly args: WebhookArgs; readonly event: WebhookEvent };
  "tradewind.rediskey": { readonly args: RedisKeyArgs; readonly event: RedisKeyEvent };
  "tradewind.redisstream": { readonly args: RedisStreamArgs; readonly event: RedisStreamEvent };
  "tradewind.signal": { readonly args: SignalArgs; readonly event: SignalEvent };
  "tradewind.all": { readonly args: AllArgs; readonly event: AllEvent };
  "tradewind.any": { readonly args: AnyArgs; readonly event: AnyEvent };
}

/** The id of a built-in trigger. */
export type BuiltinKind = keyof BuiltinTriggers;

/** Timed: its call has `wake: { at: moment }` and `timed: { payload: moment }`. */
export interface DateTimeArgs {
  readonly moment: string;
  /** In a joint wait: it was a length of time. Tests count it from the beginning of the wait on their own clock. */
  readonly deltaMs?: number;
}

/** Timed: its call has `wake: { afterMs: deltaMs }` and `timed: { payload: null }`, which stands for the moment it fires. */
export interface TimeDeltaArgs {
  readonly deltaMs: number;
}

/** The moment that was waited for. */
export type MomentEvent = string;

/** Fires when there is a file. The last part of the path may have `*` and `?`: then the first match in order of name. */
export interface FileArgs {
  readonly path: string;
  readonly intervalMs: number;
}

export interface FileEvent {
  /** The file that was found, absolute. */
  readonly path: string;
  readonly size: number;
  /** When it was last changed. */
  readonly mtime: string;
}

/** Fires when the answer has one of the statuses and, where `json` is given, that value at that place. */
export interface HttpArgs {
  /** Absolute, or relative to the connection's address when there is a connection. */
  readonly url: string;
  readonly method: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Host, port and basic authentication; `extra.headers` of the connection are sent too. */
  readonly connection: string | null;
  /** null: any from 200 to 299. */
  readonly status: readonly number[] | null;
  /** `path` is a list of member names and array indexes in the JSON of the body. */
  readonly json: { readonly path: readonly (string | number)[]; readonly equals: Json } | null;
  readonly body: string | null;
  readonly intervalMs: number;
}

export interface HttpEvent {
  readonly status: number;
  /** Parsed when the answer says that it is JSON, otherwise its text; null when it is empty. */
  readonly body: Json;
}

/** Fires when the query has a row whose first column is truthy: not NULL, false, 0, "" or "0". */
export interface SqlArgs {
  readonly connection: string;
  readonly query: string;
  readonly parameters: readonly Json[];
  readonly intervalMs: number;
}

export interface SqlEvent {
  /** The first row, by column; what is not JSON is shown as text. */
  readonly row: Readonly<Record<string, Json>>;
}

/** The states in which a run rests or works. */
export type DagRunState = "queued" | "running" | "success" | "failed";

/** Fires when the run is in one of the states. Exactly one of `runId` and `logicalDate` is set. */
export interface DagRunArgs {
  readonly dagId: string;
  readonly runId: string | null;
  readonly logicalDate: string | null;
  readonly states: readonly DagRunState[];
  /** "fail": a run that is not there fails the wait, with `DAG_RUN_GONE`. Left out: it is waited for. */
  readonly missing?: "fail";
}

export interface DagRunEvent {
  readonly dagId: string;
  readonly runId: string;
  readonly logicalDate: string | null;
  readonly state: DagRunState;
}

/** The states in which a task of another DAG can be waited for. */
export type ExternalTaskState = "success" | "failed" | "skipped" | "upstream_failed" | "removed";

/**
 * Fires when the task is in one of `states`; fails with `EXTERNAL_TASK_FAILED` when it is in one of `failedStates`.
 * Exactly one of `runId` and `logicalDate` is set. A run or task that does not exist yet is waited for.
 */
export interface ExternalTaskArgs {
  readonly dagId: string;
  readonly taskId: string;
  readonly runId: string | null;
  readonly logicalDate: string | null;
  /** null: the task as a whole; all its instances when it is mapped (a single failed one fails the trigger). */
  readonly mapIndex: number | null;
  readonly states: readonly ExternalTaskState[];
  readonly failedStates: readonly ExternalTaskState[];
}

export interface ExternalTaskEvent {
  readonly dagId: string;
  readonly runId: string;
  readonly taskId: string;
  readonly state: ExternalTaskState;
}

/** Fires when the object exists; with `wildcard`, `*` and `?` in the key are patterns and the first match in order counts. */
export interface S3KeyArgs {
  readonly bucket: string;
  readonly key: string;
  readonly wildcard: boolean;
  /** null: what the environment of the triggerer says. */
  readonly connection: string | null;
  readonly intervalMs: number;
}

export interface S3KeyEvent {
  readonly bucket: string;
  readonly key: string;
  readonly size: number;
  readonly lastModified: string;
}

/** Fires when at least `minCount` objects have keys that begin with the prefix. */
export interface S3PrefixArgs {
  readonly bucket: string;
  readonly prefix: string;
  readonly minCount: number;
  readonly connection: string | null;
  readonly intervalMs: number;
}

export interface S3PrefixEvent {
  readonly bucket: string;
  readonly prefix: string;
  /** The keys in order, the first 1000. */
  readonly keys: readonly string[];
}

/** Fires when there is no such process on the triggerer's machine. */
export interface ProcessArgs {
  readonly pid: number;
  /** A process of that id that began at another moment (to the second) is another process: the one waited for is gone. */
  readonly startedAt: string | null;
}

export interface ProcessEvent {
  readonly pid: number;
  /** When its end was noticed. */
  readonly endedAt: string;
}

/** Fires with the first call of the webhook that was received after `after`; null: after the run of the task began. */
export interface WebhookArgs {
  readonly name: string;
  readonly after: string | null;
}

export interface WebhookEvent {
  /** Parsed when the request says that it is JSON, otherwise its text; null when it is empty. */
  readonly body: Json;
  /** Names in lower case, without those that carry credentials. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Fires when the key exists and, where `equals` is given, holds that text. */
export interface RedisKeyArgs {
  readonly connection: string;
  readonly key: string;
  readonly equals: string | null;
  readonly intervalMs: number;
}

export interface RedisKeyEvent {
  readonly key: string;
  /** null when it holds something else than a text. */
  readonly value: string | null;
}

/** Fires with every entry of the stream; with `group`, an entry is acknowledged when its event is stored. */
export interface RedisStreamArgs {
  readonly connection: string;
  readonly stream: string;
  readonly group: string | null;
  /** Entries after this id; "0": from the first, "$": only new ones. With a group: where the group begins when it is created. */
  readonly from: string;
}

export interface RedisStreamEvent {
  readonly id: string;
  readonly fields: Readonly<Record<string, string>>;
}

/**
 * Fires with the first signal of that key that matches `where`, has the value `equals` and comes from a task of `inRun`,
 * as far as these are given (see `SignalCondition`). It counts when it was sent at `since` or later (null: after the
 * wait began) and, in the order of the log, after the one of version `after`.
 */
export interface SignalArgs {
  /** In both, "*" stands for any text, also none. */
  readonly namespace: string;
  readonly key: string;
  /** Without references into a conf: they are resolved. null: any value. */
  readonly where: Json | null;
  readonly equals: { readonly value: Json } | null;
  readonly inRun: { readonly dagId: string; readonly runId: string } | null;
  readonly since: string | null;
  readonly after: number | null;
}

/** A signal, as it was heard. */
export interface SignalEvent<Value = Json> {
  readonly key: string;
  readonly value: Value;
  /** Of later signals of the same key it is higher. */
  readonly version: number;
}

/**
 * Fires when all members have fired, with their first events by name; fails when one fails. No member has
 * `wake.afterMs`: such a one is stored with the moment at which it is over (`tradewind.datetime`).
 */
export interface AllArgs {
  readonly members: Readonly<Record<string, TriggerCall>>;
}

export type AllEvent = Readonly<Record<string, Json>>;

/** Fires when the first member does, with its event; ends or fails with the first that ends or fails. Otherwise as {@link AllArgs}. */
export interface AnyArgs extends AllArgs {
  /** The members are a list: their names are "0", "1" …, and the event has an `index`. */
  readonly list: boolean;
}

export type AnyEvent =
  | { readonly name: string; readonly event: Json }
  | { readonly index: number; readonly event: Json };

type Named = { readonly [K in BuiltinKind]: (args: BuiltinTriggers[K]["args"]) => string };

/**
 * What a wait is for, in a few words. Arguments may hold what is not for every reader (headers, queries, parameters): only
 * what names the thing is shown.
 */
const WAITED_FOR: Named = {
  "tradewind.datetime": ({ moment }) => moment,
  "tradewind.timedelta": () => "the end of a length of time",
  "tradewind.file": ({ path }) => `the file ${path}`,
  "tradewind.http": ({ method, url }) => `${method} ${url.split(/[?#]/, 1)[0] ?? ""}`,
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
  "tradewind.all": () => "all of several triggers",
  "tradewind.any": () => "the first of several triggers",
};

export const BUILTIN_KINDS = Object.keys(WAITED_FOR).sort() as readonly BuiltinKind[];

const LONGEST_NAME = 200;
/** By call: a call in a manifest is shared by all instances of its task. */
const names = new WeakMap<object, string>();

/** What a wait is for, as messages about it say: "waited for the file /in/a.csv". */
export function waitedFor(call: Pick<TriggerCall, "args" | "kind">): string {
  const name = names.get(call) ?? nameOf(call);
  names.set(call, name);
  return name;
}

function nameOf({ args, kind }: Pick<TriggerCall, "args" | "kind">): string {
  const isRecord = typeof args === "object" && args !== null && !Array.isArray(args);
  const describe = (WAITED_FOR as Readonly<Record<string, (args: never) => string>>)[kind];
  const text = isRecord && describe ? describe(args as never) : `the trigger ${kind}`;
  return text.length > LONGEST_NAME ? `${text.slice(0, LONGEST_NAME)}…` : text;
}
