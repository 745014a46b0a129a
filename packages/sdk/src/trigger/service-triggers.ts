/** Triggers that poll external systems: files, processes, HTTP, SQL, S3, Redis. */

import type { Json } from "../manifest.ts";
import type { Moment } from "../schedule/instant.ts";
import { BuiltinTrigger, OptionReader, type PollOptions, type TriggerPlace } from "./builtin-trigger.ts";

/**
 * Options of a {@link FileTrigger}.
 * @example const options: FileOptions = { path: "/data/in/sales-*.csv", interval: "30s" };
 */
export interface FileOptions extends PollOptions {
  /**
   * The absolute path; with `*` and `?` in its last part, a task gets the first match in order of name, a schedule each
   * match.
   */
  readonly path: string;
}

/**
 * Fires when a file exists on the triggerer's machine.
 * @example const { path, size } = await ctx.until("export", new FileTrigger({ path: "/data/in/sales-*.csv" }));
 */
export class FileTrigger extends BuiltinTrigger<"tradewind.file"> {
  constructor(options: FileOptions) {
    const o = new OptionReader("FileTrigger", options);
    const path = o.text("path");
    if (/[*?].*[/\\]/.test(path)) o.refuse("path", "may have * and ? in its last part only");
    super("tradewind.file", { path, intervalMs: o.interval() }, o.place());
  }
}

/**
 * Options of an {@link HttpTrigger}.
 * @example const options: HttpOptions = { url: "/jobs/7", connection: "jobs", json: { path: "state", equals: "done" } };
 */
export interface HttpOptions extends PollOptions {
  /** Absolute, or relative to the address of the connection. */
  readonly url: string;
  /** The HTTP method (default "GET"). */
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The id of a stored connection with host, port, user and password; secrets belong there, not in the headers. */
  readonly connection?: string;
  /** The accepted statuses (default 200 to 299). */
  readonly status?: number | readonly number[];
  /** The value that the JSON response must have at a path: "job.state", "items[0].id". */
  readonly json?: { readonly path: string; readonly equals: Json };
  /** The request body: a text is sent unchanged, any other value as JSON. */
  readonly body?: Json;
}

/**
 * Fires when an HTTP response has the wanted status, or the wanted value in its JSON.
 *
 * @example
 * ```ts
 * const done = new HttpTrigger({ url: "https://jobs.example/7", json: { path: "job.state", equals: "done" } });
 * const { body } = await ctx.until("job", done, { timeout: "6h" });
 * ```
 */
export class HttpTrigger extends BuiltinTrigger<"tradewind.http"> {
  constructor(options: HttpOptions) {
    const o = new OptionReader("HttpTrigger", options);
    const connection = o.optionalText("connection");
    const url = o.text("url");
    if (connection === null ? !isHttpUrl(url) : /^[a-z]+:/i.test(url) && !isHttpUrl(url)) {
      o.refuse("url", "must be an absolute http or https URL, or relative to a connection");
    }
    const body = o.raw("body") === null ? null : o.json("body");
    const text = body === null || typeof body === "string" ? body : JSON.stringify(body);
    const headers = Object.fromEntries(
      Object.entries(o.texts("headers")).map(([name, value]) => [name.toLowerCase(), value]),
    );
    if (text !== null && text !== body) headers["content-type"] ??= "application/json";
    super(
      "tradewind.http",
      {
        url,
        method: (o.optionalText("method") ?? "GET").toUpperCase(),
        headers,
        connection,
        status: statuses(o),
        json: condition(o),
        body: text,
        intervalMs: o.interval(),
      },
      o.place(),
    );
  }
}

/**
 * Options of an {@link SqlTrigger}.
 * @example const options: SqlOptions = { connection: "warehouse", query: "SELECT count(*) FROM sales" };
 */
export interface SqlOptions extends PollOptions {
  /** The id of a stored connection to a PostgreSQL database. */
  readonly connection: string;
  /** Fires when the first column of its first row is truthy: not NULL, false, 0, "" or "0". */
  readonly query: string;
  /** Values of $1, $2 … in the query. */
  readonly parameters?: readonly Json[];
}

/**
 * Fires when a query returns a truthy value.
 * @example await ctx.until("loaded", new SqlTrigger({ connection: "warehouse", query: "SELECT count(*) FROM sales" }));
 */
export class SqlTrigger extends BuiltinTrigger<"tradewind.sql"> {
  constructor(options: SqlOptions) {
    const o = new OptionReader("SqlTrigger", options);
    const parameters = o.json("parameters") ?? [];
    super(
      "tradewind.sql",
      {
        connection: o.text("connection"),
        query: o.text("query"),
        parameters: Array.isArray(parameters) ? parameters : o.refuse("parameters", "must be an array"),
        intervalMs: o.interval(),
      },
      o.place(),
    );
  }
}

/**
 * Options of an {@link S3KeyTrigger}.
 * @example const options: S3KeyOptions = { bucket: "exports", key: "sales/*.parquet", wildcard: true };
 */
export interface S3KeyOptions extends PollOptions {
  readonly bucket: string;
  readonly key: string;
  /**
   * Treat `*` and `?` in the key as patterns: a task gets the first match in order of key, a schedule each match
   * (default false).
   */
  readonly wildcard?: boolean;
  /** The id of a stored connection (default: the credentials in the environment of the triggerer). */
  readonly connection?: string;
}

/**
 * Fires when an object exists in a bucket of S3 or a compatible store.
 * @example const { key } = await ctx.until("export", new S3KeyTrigger({ bucket: "exports", key: "sales/*.parquet", wildcard: true }));
 */
export class S3KeyTrigger extends BuiltinTrigger<"tradewind.s3key"> {
  constructor(options: S3KeyOptions) {
    const o = new OptionReader("S3KeyTrigger", options);
    super(
      "tradewind.s3key",
      {
        bucket: o.text("bucket"),
        key: o.text("key"),
        wildcard: o.flag("wildcard"),
        connection: o.optionalText("connection"),
        intervalMs: o.interval(),
      },
      o.place(),
    );
  }
}

/**
 * Options of an {@link S3PrefixTrigger}.
 * @example const options: S3PrefixOptions = { bucket: "exports", prefix: "sales/", minCount: 24 };
 */
export interface S3PrefixOptions extends PollOptions {
  readonly bucket: string;
  readonly prefix: string;
  /** The required number of objects (default 1). */
  readonly minCount?: number;
  /** The id of a stored connection (default: the credentials in the environment of the triggerer). */
  readonly connection?: string;
}

/**
 * Fires when enough objects of a bucket have keys with a prefix.
 * @example const { keys } = await ctx.until("parts", new S3PrefixTrigger({ bucket: "exports", prefix: "sales/", minCount: 24 }));
 */
export class S3PrefixTrigger extends BuiltinTrigger<"tradewind.s3prefix"> {
  constructor(options: S3PrefixOptions) {
    const o = new OptionReader("S3PrefixTrigger", options);
    super(
      "tradewind.s3prefix",
      {
        bucket: o.text("bucket"),
        prefix: o.text("prefix"),
        minCount: o.whole("minCount", { min: 1, fallback: 1 }),
        connection: o.optionalText("connection"),
        intervalMs: o.interval(),
      },
      o.place(),
    );
  }
}

/**
 * Options of a {@link ProcessTrigger}.
 * @example const options: ProcessOptions = { pid: 4711, startedAt: "2027-01-04T08:00:00Z" };
 */
export interface ProcessOptions extends TriggerPlace {
  readonly pid: number;
  /** The start of the process, which distinguishes it from a later process of the same id. */
  readonly startedAt?: Moment;
}

/**
 * Fires when a process on the triggerer's machine has ended.
 * @example await ctx.until("exported", new ProcessTrigger({ pid: 4711 }));
 */
export class ProcessTrigger extends BuiltinTrigger<"tradewind.process"> {
  constructor(options: ProcessOptions) {
    const o = new OptionReader("ProcessTrigger", options);
    super(
      "tradewind.process",
      { pid: o.whole("pid", { min: 1 }), startedAt: o.optionalMoment("startedAt") },
      o.place(),
    );
  }
}

/**
 * Options of a {@link RedisKeyTrigger}.
 * @example const options: RedisKeyOptions = { connection: "cache", key: "release:42", equals: "ok" };
 */
export interface RedisKeyOptions extends PollOptions {
  /** The id of a stored connection. */
  readonly connection: string;
  readonly key: string;
  /** The text that the key must hold. */
  readonly equals?: string;
}

/**
 * Fires when a key exists in Redis.
 * @example await ctx.until("released", new RedisKeyTrigger({ connection: "cache", key: "release:42", equals: "ok" }));
 */
export class RedisKeyTrigger extends BuiltinTrigger<"tradewind.rediskey"> {
  constructor(options: RedisKeyOptions) {
    const o = new OptionReader("RedisKeyTrigger", options);
    const equals = o.raw("equals");
    super(
      "tradewind.rediskey",
      {
        connection: o.text("connection"),
        key: o.text("key"),
        equals: equals === null || typeof equals === "string" ? equals : o.refuse("equals", "must be a text"),
        intervalMs: o.interval(),
      },
      o.place(),
    );
  }
}

/**
 * Options of a {@link RedisStreamTrigger}.
 * @example const options: RedisStreamOptions = { connection: "bus", stream: "orders", group: "tradewind" };
 */
export interface RedisStreamOptions extends TriggerPlace {
  /** The id of a stored connection. */
  readonly connection: string;
  readonly stream: string;
  /** The consumer group; an entry is acknowledged when its event is stored. */
  readonly group?: string;
  /** The id after which entries are read: "0" from the first, "$" only new ones (default "$"). */
  readonly from?: string;
}

/**
 * Fires with every entry of a Redis stream.
 * @example dag("orders", { schedule: on(new RedisStreamTrigger({ connection: "bus", stream: "orders", group: "tradewind" })) }, build);
 */
export class RedisStreamTrigger extends BuiltinTrigger<"tradewind.redisstream"> {
  constructor(options: RedisStreamOptions) {
    const o = new OptionReader("RedisStreamTrigger", options);
    const from = o.optionalText("from") ?? "$";
    if (!/^(\$|\d+(-\d+)?)$/.test(from)) o.refuse("from", 'must be "$", "0" or the id of an entry');
    super(
      "tradewind.redisstream",
      { connection: o.text("connection"), stream: o.text("stream"), group: o.optionalText("group"), from },
      o.place(),
    );
  }
}

function isHttpUrl(text: string): boolean {
  return /^https?:\/\/[^/]/i.test(text) && URL.canParse(text);
}

function statuses(o: OptionReader<HttpOptions>): number[] | null {
  const given = o.raw("status");
  if (given === null) return null;
  const list: unknown[] = Array.isArray(given) ? given : [given];
  const isStatus = (value: unknown) =>
    Number.isInteger(value) && (value as number) >= 100 && (value as number) <= 599;
  if (list.length === 0 || !list.every(isStatus)) o.refuse("status", "must be a status or a list of them");
  return [...new Set(list as number[])].sort((a, b) => a - b);
}

function condition(o: OptionReader<HttpOptions>): { path: (string | number)[]; equals: Json } | null {
  const json = o.json("json");
  if (json === null) return null;
  const { path, equals = null } = json as { path?: unknown; equals?: Json };
  if (
    typeof path !== "string" ||
    !/^[^.[\]]+(\[\d+\])*(\.[^.[\]]+(\[\d+\])*)*$|^(\[\d+\])+(\.[^.[\]]+(\[\d+\])*)*$/.test(path)
  ) {
    return o.refuse("json", 'must be { path: "a.b[0]", equals: value }');
  }
  const parts = [...path.matchAll(/\[(\d+)\]|([^.[\]]+)/g)];
  return { path: parts.map(([, index, name]) => (index === undefined ? name! : Number(index))), equals };
}
