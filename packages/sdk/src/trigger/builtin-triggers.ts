/**
 * The stored arguments and the events of the built-in triggers. The classes of the same names write the arguments,
 * checked and with all defaults, so that equal waits have equal arguments; the engine reads them. Instants are ISO
 * texts in UTC, durations whole milliseconds.
 *
 * A trigger that polls does so every `intervalMs`, the first time immediately.
 */
import type { Json, TriggerCall } from "../manifest.ts";
import type { ApprovalArgs, ApprovalEvent } from "./approval-request.ts";

/** Every built-in kind with its stored arguments and its event. */
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
  "tradewind.approval": { readonly args: ApprovalArgs; readonly event: ApprovalEvent };
  "tradewind.all": { readonly args: AllArgs; readonly event: AllEvent };
  "tradewind.any": { readonly args: AnyArgs; readonly event: AnyEvent };
}

/** The id of a built-in trigger. */
export type BuiltinKind = keyof BuiltinTriggers;

/** Arguments of a {@link DateTimeTrigger}; its call has `wake: { at: moment }` and `timed: { payload: moment }`. */
export interface DateTimeArgs {
  readonly moment: string;
  /** Set in a joint wait for a duration, which tests count from the beginning of the wait on their own clock. */
  readonly deltaMs?: number;
}

/**
 * Arguments of a {@link TimeDeltaTrigger}; its call has `wake: { afterMs: deltaMs }` and `timed: { payload: null }`.
 */
export interface TimeDeltaArgs {
  readonly deltaMs: number;
}

/**
 * The event of a time trigger: the moment as an ISO text.
 * @example const moment: MomentEvent = await ctx.until("cooled", new TimeDeltaTrigger({ delta: "2h" }));
 */
export type MomentEvent = string;

/** Fires when the file exists; `*` and `?` in the last part of the path match the first file in order of name. */
export interface FileArgs {
  readonly path: string;
  readonly intervalMs: number;
}

/**
 * The event of a {@link FileTrigger}.
 * @example const { path, size }: FileEvent = await ctx.until("file", new FileTrigger({ path: "/data/in/*.csv" }));
 */
export interface FileEvent {
  /** The absolute path of the file. */
  readonly path: string;
  readonly size: number;
  /** The time of the last change. */
  readonly mtime: string;
}

/** Fires when the response has one of the statuses and, with `json`, that value at that path. */
export interface HttpArgs {
  /** Absolute, or relative to the address of the connection. */
  readonly url: string;
  readonly method: string;
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Host, port and basic authentication; `extra.headers` of the connection are also sent. */
  readonly connection: string | null;
  /** Null: any status from 200 to 299. */
  readonly status: readonly number[] | null;
  /** `path` is a list of member names and array indexes in the JSON of the body. */
  readonly json: { readonly path: readonly (string | number)[]; readonly equals: Json } | null;
  readonly body: string | null;
  readonly intervalMs: number;
}

/**
 * The event of an {@link HttpTrigger}.
 * @example const { status }: HttpEvent = await ctx.until("job", new HttpTrigger({ url: "https://jobs.test/7" }));
 */
export interface HttpEvent {
  readonly status: number;
  /** Parsed if the response is JSON, otherwise its text; null if it is empty. */
  readonly body: Json;
}

/** Fires when the query has a row whose first column is truthy: not NULL, false, 0, "" or "0". */
export interface SqlArgs {
  readonly connection: string;
  readonly query: string;
  readonly parameters: readonly Json[];
  readonly intervalMs: number;
}

/**
 * The event of an {@link SqlTrigger}.
 * @example const { row }: SqlEvent = await ctx.until("rows", new SqlTrigger({ connection: "db", query: "SELECT 1" }));
 */
export interface SqlEvent {
  /** The first row by column; values that are not JSON are texts. */
  readonly row: Readonly<Record<string, Json>>;
}

/**
 * The states of a run.
 * @example const states: DagRunState[] = ["success", "failed"];
 */
export type DagRunState = "queued" | "running" | "success" | "failed";

/** Fires when the run is in one of the states; exactly one of `runId` and `logicalDate` is set. */
export interface DagRunArgs {
  readonly dagId: string;
  readonly runId: string | null;
  readonly logicalDate: string | null;
  readonly states: readonly DagRunState[];
  /** "fail": the wait fails with `DAG_RUN_GONE` if the run does not exist; missing: the wait continues. */
  readonly missing?: "fail";
}

/**
 * The event of a {@link DagRunTrigger}.
 * @example const { state }: DagRunEvent = await ctx.until("run", new DagRunTrigger({ dagId: "sales", runId: "r1" }));
 */
export interface DagRunEvent {
  readonly dagId: string;
  readonly runId: string;
  readonly logicalDate: string | null;
  readonly state: DagRunState;
}

/**
 * The states of a task of another DAG that can be waited for.
 * @example const states: ExternalTaskState[] = ["success", "skipped"];
 */
export type ExternalTaskState = "success" | "failed" | "skipped" | "upstream_failed" | "removed";

/**
 * Fires when the task is in one of `states`, fails with `EXTERNAL_TASK_FAILED` in one of `failedStates`, and waits for
 * a run or task that does not exist; exactly one of `runId` and `logicalDate` is set.
 */
export interface ExternalTaskArgs {
  readonly dagId: string;
  readonly taskId: string;
  readonly runId: string | null;
  readonly logicalDate: string | null;
  /** Null: the whole task; for a mapped task all instances (a single failed one fails the trigger). */
  readonly mapIndex: number | null;
  readonly states: readonly ExternalTaskState[];
  readonly failedStates: readonly ExternalTaskState[];
}

/**
 * The event of an {@link ExternalTaskTrigger}.
 * @example const isDone = (event: ExternalTaskEvent) => event.state === "success";
 */
export interface ExternalTaskEvent {
  readonly dagId: string;
  readonly runId: string;
  readonly taskId: string;
  readonly state: ExternalTaskState;
}

/** Fires when the object exists; with `wildcard`, `*` and `?` in the key match the first object in order of key. */
export interface S3KeyArgs {
  readonly bucket: string;
  readonly key: string;
  readonly wildcard: boolean;
  /** Null: the credentials in the environment of the triggerer. */
  readonly connection: string | null;
  readonly intervalMs: number;
}

/**
 * The event of an {@link S3KeyTrigger}.
 * @example const { size }: S3KeyEvent = await ctx.until("file", new S3KeyTrigger({ bucket: "in", key: "sales.csv" }));
 */
export interface S3KeyEvent {
  readonly bucket: string;
  readonly key: string;
  readonly size: number;
  readonly lastModified: string;
}

/** Fires when at least `minCount` objects have keys with the prefix. */
export interface S3PrefixArgs {
  readonly bucket: string;
  readonly prefix: string;
  readonly minCount: number;
  readonly connection: string | null;
  readonly intervalMs: number;
}

/**
 * The event of an {@link S3PrefixTrigger}.
 * @example const { keys }: S3PrefixEvent = await ctx.until("files", new S3PrefixTrigger({ bucket: "in", prefix: "sales/" }));
 */
export interface S3PrefixEvent {
  readonly bucket: string;
  readonly prefix: string;
  /** The first 1000 keys in order. */
  readonly keys: readonly string[];
}

/** Fires when the process does not exist on the triggerer's machine. */
export interface ProcessArgs {
  readonly pid: number;
  /** The start of the process, to the second: a process of the same id with another start is another process. */
  readonly startedAt: string | null;
}

/**
 * The event of a {@link ProcessTrigger}.
 * @example const { endedAt }: ProcessEvent = await ctx.until("exported", new ProcessTrigger({ pid: 4711 }));
 */
export interface ProcessEvent {
  readonly pid: number;
  /** When the end of the process was noticed. */
  readonly endedAt: string;
}

/** Fires with the first call of the webhook after `after`; null: after the run of the task began. */
export interface WebhookArgs {
  readonly name: string;
  readonly after: string | null;
}

/**
 * The event of a {@link WebhookTrigger}.
 * @example const { body }: WebhookEvent = await ctx.until("approved", new WebhookTrigger({ name: "approvals" }));
 */
export interface WebhookEvent {
  /** Parsed if the request is JSON, otherwise its text; null if it is empty. */
  readonly body: Json;
  /** Names in lower case, without headers that carry credentials. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Fires when the key exists and, with `equals`, holds that text. */
export interface RedisKeyArgs {
  readonly connection: string;
  readonly key: string;
  readonly equals: string | null;
  readonly intervalMs: number;
}

/**
 * The event of a {@link RedisKeyTrigger}.
 * @example const { value }: RedisKeyEvent = await ctx.until("key", new RedisKeyTrigger({ connection: "cache", key: "go" }));
 */
export interface RedisKeyEvent {
  readonly key: string;
  /** Null if the value is not a text. */
  readonly value: string | null;
}

/** Fires with every entry of the stream; with `group`, an entry is acknowledged when its event is stored. */
export interface RedisStreamArgs {
  readonly connection: string;
  readonly stream: string;
  readonly group: string | null;
  /**
   * Entries after this id; "0": from the first, "$": only new ones; with a group, the position at which the group is
   * created.
   */
  readonly from: string;
}

/**
 * The event of a {@link RedisStreamTrigger}.
 * @example const order = (entry: RedisStreamEvent) => entry.fields["order"];
 */
export interface RedisStreamEvent {
  readonly id: string;
  readonly fields: Readonly<Record<string, string>>;
}

/**
 * Fires with the first signal of the key that matches `where`, `equals` and `inRun`, was sent at `since` or later
 * (null: after the wait began), and follows the version `after` in the log.
 */
export interface SignalArgs {
  /** In both, "*" matches any text, including an empty one. */
  readonly namespace: string;
  readonly key: string;
  /** Without references to a conf, which are resolved; null: any value. */
  readonly where: Json | null;
  readonly equals: { readonly value: Json } | null;
  readonly inRun: { readonly dagId: string; readonly runId: string } | null;
  readonly since: string | null;
  readonly after: number | null;
}

/**
 * A received signal.
 * @example const paid: SignalEvent = await ctx.until("paid", signal("order.paid"));
 */
export interface SignalEvent<Value = Json> {
  readonly key: string;
  readonly value: Value;
  /** Grows with each signal of the same key. */
  readonly version: number;
}

/** Fires with the events of all members by name, or fails with the first failure; a duration is stored as a moment. */
export interface AllArgs {
  readonly members: Readonly<Record<string, TriggerCall>>;
}

/** The events of a joint wait for all members, by name. */
export type AllEvent = Readonly<Record<string, Json>>;

/** Fires, ends or fails with the first member that does; otherwise like {@link AllArgs}. */
export interface AnyArgs extends AllArgs {
  /** The members are a list: their names are "0", "1" …, and the event has an `index`. */
  readonly list: boolean;
}

/** The event of the first member, with its name or its index. */
export type AnyEvent =
  | { readonly name: string; readonly event: Json }
  | { readonly index: number; readonly event: Json };

type Named = { readonly [K in BuiltinKind]: (args: BuiltinTriggers[K]["args"]) => string };

/**
 * Describes a wait in a few words. Arguments may contain secrets (headers, queries, parameters): only the name of the
 * resource is shown.
 */
const WAITED_FOR: Named = {
  "tradewind.datetime": ({ moment }) => moment,
  "tradewind.timedelta": () => "the end of a duration",
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
  "tradewind.approval": ({ title }) => `an answer to "${title}"`,
  "tradewind.all": () => "all of several triggers",
  "tradewind.any": () => "the first of several triggers",
};

/**
 * The ids of all built-in triggers, sorted.
 * @example BUILTIN_KINDS.includes("tradewind.file");
 */
export const BUILTIN_KINDS = Object.keys(WAITED_FOR).sort() as readonly BuiltinKind[];

const LONGEST_NAME = 200;
/** Cached by call: a call in a manifest is shared by all instances of its task. */
const names = new WeakMap<object, string>();

/**
 * Describes a wait for messages: "waited for the file /in/a.csv".
 * @example waitedFor({ kind: "tradewind.process", args: { pid: 4711, startedAt: null } }); // "the end of process 4711"
 */
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
