/** Triggers that look at the world outside: files, processes, HTTP, SQL, S3, Redis. */

import type { Json } from "../manifest.ts";
import type { Moment } from "../schedule/instant.ts";
import { BuiltinTrigger, OptionReader, type PollOptions, type TriggerPlace } from "./builtin-trigger.ts";

export interface FileOptions extends PollOptions {
  /** Absolute; its last part may have `*` and `?`: then a task gets the first match in order of name, a schedule each. */
  readonly path: string;
}

/**
 * Fires when there is a file where the triggerer runs.
 *
 * @example
 * ```ts
 * const { path, size } = await ctx.until("export", new FileTrigger({ path: "/data/in/sales-*.csv" }));
 * ```
 */
export class FileTrigger extends BuiltinTrigger<"tradewind.file"> {
  constructor(options: FileOptions) {
    const o = new OptionReader("FileTrigger", options);
    const path = o.text("path");
    if (/[*?].*[/\\]/.test(path)) o.refuse("path", "may have * and ? in its last part only");
    super("tradewind.file", { path, intervalMs: o.interval() }, o.place());
  }
}

export interface HttpOptions extends PollOptions {
  /** Absolute, or relative to the connection's address when there is a connection. */
  readonly url: string;
  /** The method ("GET"). */
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The id of a stored connection: host, port, user and password. Secrets belong there, not in the headers. */
  readonly connection?: string;
  /** Which statuses count (200 to 299). */
  readonly status?: number | readonly number[];
  /** And this value has to be at that place of the JSON answer: "job.state", "items[0].id". */
  readonly json?: { readonly path: string; readonly equals: Json };
  /** A text is sent as it is, anything else as JSON. */
  readonly body?: Json;
}

/**
 * Fires when an HTTP request is answered as wanted: by its status, or by a value in its JSON.
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

export interface SqlOptions extends PollOptions {
  /** The id of a stored connection to a PostgreSQL database. */
  readonly connection: string;
  /** Fires when the first column of its first row is truthy: not NULL, false, 0, "" or "0". */
  readonly query: string;
  /** For $1, $2 … of the query. */
  readonly parameters?: readonly Json[];
}

/**
 * Fires when a query answers with something truthy.
 *
 * @example
 * ```ts
 * const loaded = new SqlTrigger({ connection: "warehouse", query: "SELECT count(*) FROM sales WHERE day = $1", parameters: ["2026-01-31"] });
 * const { row } = await ctx.until("loaded", loaded);
 * ```
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

export interface S3KeyOptions extends PollOptions {
  readonly bucket: string;
  readonly key: string;
  /** true: `*` and `?` in the key are patterns; a task gets the first match in order of key, a schedule each (false). */
  readonly wildcard?: boolean;
  /** The id of a stored connection; without one, what the environment of the triggerer says. */
  readonly connection?: string;
}

/**
 * Fires when there is an object in a bucket of S3 or of anything that speaks its protocol.
 *
 * @example
 * ```ts
 * const { key } = await ctx.until("export", new S3KeyTrigger({ bucket: "exports", key: "sales/*.parquet", wildcard: true }));
 * ```
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

export interface S3PrefixOptions extends PollOptions {
  readonly bucket: string;
  readonly prefix: string;
  /** How many objects there have to be (1). */
  readonly minCount?: number;
  /** The id of a stored connection; without one, what the environment of the triggerer says. */
  readonly connection?: string;
}

/**
 * Fires when enough objects of a bucket have keys that begin with a prefix.
 *
 * @example
 * ```ts
 * const { keys } = await ctx.until("parts", new S3PrefixTrigger({ bucket: "exports", prefix: "sales/", minCount: 24 }));
 * ```
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

export interface ProcessOptions extends TriggerPlace {
  readonly pid: number;
  /** When it began: tells it from a later process of the same id. */
  readonly startedAt?: Moment;
}

/**
 * Fires when a process on the triggerer's machine has ended.
 *
 * @example
 * ```ts
 * await ctx.until("exported", new ProcessTrigger({ pid: 4711 }));
 * ```
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

export interface RedisKeyOptions extends PollOptions {
  /** The id of a stored connection. */
  readonly connection: string;
  readonly key: string;
  /** And it has to hold this text. */
  readonly equals?: string;
}

/**
 * Fires when there is a key in Redis.
 *
 * @example
 * ```ts
 * await ctx.until("released", new RedisKeyTrigger({ connection: "cache", key: "release:42", equals: "ok" }));
 * ```
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

export interface RedisStreamOptions extends TriggerPlace {
  /** The id of a stored connection. */
  readonly connection: string;
  readonly stream: string;
  /** A consumer group: an entry is acknowledged when its event is stored. */
  readonly group?: string;
  /** Entries after this id: "0" from the first, "$" only new ones ("$"). */
  readonly from?: string;
}

/**
 * Fires with every entry of a Redis stream.
 *
 * @example
 * ```ts
 * dag("orders", { schedule: on(new RedisStreamTrigger({ connection: "bus", stream: "orders", group: "tradewind" })) }, build);
 * ```
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
