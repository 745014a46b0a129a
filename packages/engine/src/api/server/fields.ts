/** Building blocks of request and response schemas: ids, dates, filters, pages. */
import { z } from "zod";
import { readCursor } from "../../store/page/keyset.ts";
import type { Page, Range } from "../../store/page/query.ts";
import { invalid } from "./problem.ts";

/** The only bundle: the DAG folder. */
export const BUNDLE_NAME = "dags-folder";

const MAX_ID = 250;
const MAX_INT4 = 2_147_483_647;

/** A name in a path or filter. Its characters are checked on creation; here it must only be storable. */
export const id = z
  .string()
  .min(1)
  .max(MAX_ID)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it refuses
  .regex(/^[^\u0000-\u001f\u007f]*$/, "Must not contain control characters");

/** A new name. */
export const newId = z
  .string()
  .min(1)
  .max(MAX_ID)
  .regex(/^(?!\.+$)[\w.~:+-]+$/, "May contain letters, digits and _ . ~ : + - only, and not only dots")
  .refine((value) => value !== "~", "Must not be ~, which means any in paths");

export const text = z
  .string()
  .max(10_000)
  .regex(/^[^\0]*$/, "Must not contain NUL characters");
export const note = z.string().max(1000).nullable();

/** A path segment; undefined for "~", which means any. */
export function named(value: string): string | undefined {
  return value === "~" ? undefined : value;
}

/** For filters with lists of names. */
export function namedList(value: string): readonly string[] | undefined {
  return value === "~" ? undefined : [value];
}

const ISO = /^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?$/i;

/** Keeps four-digit years in any time zone, also one period before or after. */
const FIRST = new Date("0002-01-01T00:00:00Z");
const LAST = new Date("9998-12-31T23:59:59.999Z");
const NOT_ISO = "Must be an ISO 8601 date-time, e.g. 2026-01-31T02:00:00Z";
const OUT_OF_RANGE = "Out of range: must be between 0002-01-01 and 9998-12-31, in UTC";

/** An ISO 8601 instant; UTC without an offset. */
export const instant = z
  .string()
  .max(40)
  .transform((value, ctx) => {
    // An unencoded "+" of a client arrives as a space.
    const found = parseInstant(value.trim().replace(/ (\d{2}:?\d{2})$/, "+$1"));
    if (found instanceof Date) return found;
    ctx.addIssue({ code: "custom", message: found });
    return z.NEVER;
  });

/** An instant, or a date for the whole day; the caller decides the time zone of the day. */
export const instantOrDay = z
  .string()
  .max(40)
  .transform((value, ctx) => {
    const found = instant.safeParse(value);
    if (found.success) return /^\d{4}-\d{2}-\d{2}$/.test(value) ? { day: value } : found.data;
    for (const { message } of found.error.issues) ctx.addIssue({ code: "custom", message });
    return z.NEVER;
  });

/** The instant, or the error message. */
function parseInstant(value: string): Date | string {
  const match = ISO.exec(value);
  if (match === null) return NOT_ISO;
  const [, time, , , zone] = match;
  const iso = time === undefined ? `${value}T00:00:00Z` : zone === undefined ? `${value}Z` : value;
  const date = new Date(iso.replace(" ", "T").toUpperCase());
  // `new Date("2026-02-30")` rolls over into March instead of failing.
  const day = Number(value.slice(8, 10));
  const days = new Date(Date.UTC(Number(value.slice(0, 4)), Number(value.slice(5, 7)), 0)).getUTCDate();
  if (Number.isNaN(date.getTime()) || day > days) return NOT_ISO;
  return date < FIRST || date > LAST ? OUT_OF_RANGE : date;
}

export const int = (min: number, max = MAX_INT4) =>
  z.coerce
    .number({ error: ({ input }) => (input === undefined ? undefined : "Must be a whole number") })
    .int("Must be a whole number")
    .min(min)
    .max(max);
/** Below -1: placeholder for the future instances of an item of a map. */
export const mapIndex = int(-MAX_INT4 - 1);
export const flag = z.stringbool();

/** A repeatable query parameter. */
export function many<T extends z.ZodType>(item: T) {
  return z
    .union([z.array(item).max(1000), item])
    .transform((value) => (Array.isArray(value) ? value : [value]) as z.output<T>[]);
}

const MAX_PAGE = 1000;

export const pageQuery = {
  limit: int(0)
    .default(50)
    .transform((value) => Math.min(value, MAX_PAGE)),
  offset: int(0).default(0),
};

/** Pages of growing lists, also by cursor. Totals are exact up to 10,000 and estimates above. */
export const cursorQuery = {
  ...pageQuery,
  cursor: z
    .string()
    .max(10_000)
    .optional()
    .describe(
      "Empty for the first page, then next_cursor or previous_cursor of the response. Offset is then ignored, and total_entries is null.",
    ),
};

/** The page requested by a query of `cursorQuery`. */
export function cursorPageOf(query: {
  limit: number;
  offset: number;
  cursor?: string;
  order_by: readonly string[];
}): Page {
  const page = { limit: query.limit, offset: query.offset, orderBy: query.order_by };
  if (query.cursor === undefined) return page;
  const cursor = readCursor(query.cursor, query.order_by);
  if (cursor === null)
    throw invalid(
      ["query", "cursor"],
      "Invalid cursor for this list and order: start again with an empty cursor",
    );
  return { ...page, cursor };
}

/** A filter for a feature of Airflow that does not exist here: it matches nothing. */
export function absent(what: string) {
  return text
    .transform((value) => value !== "" && value !== "~")
    .optional()
    .describe(`Tradewind has no ${what}: this filter matches nothing.`);
}

/** The filter by bundle name: all DAGs are in one bundle. */
export const bundleName = text.optional().describe(`Every DAG comes from "${BUNDLE_NAME}".`);

export function isOtherBundle(name: string | undefined): boolean {
  return name !== undefined && name !== "" && name !== BUNDLE_NAME;
}

/** `order_by`, limited to the sortable fields of the resource. */
export function orderBy(order: Readonly<Record<string, string>>, initial: string) {
  const keys = Object.keys(order);
  const allowed = new Set(keys.flatMap((key) => [key, `-${key}`]));
  const one = z.string().refine((value) => allowed.has(value), {
    message: `Can order by: ${keys.join(", ")}; prefix "-" reverses the order`,
  });
  return z
    .union([z.array(one).max(10), one])
    .transform((value) => (Array.isArray(value) ? value : [value]))
    .default([initial]);
}

/** `<name>_gte`, `_gt`, `_lte`, `_lt` as a flat shape, for instants. */
export function instantRange<N extends string>(name: N) {
  return rangeShape(name, instant.optional());
}

export function numberRange<N extends string>(name: N) {
  return rangeShape(
    name,
    z.coerce
      .number({ error: () => "Must be a number" })
      .finite()
      .optional(),
  );
}

type Bounds<N extends string, S> = { [K in `${N}_gte` | `${N}_gt` | `${N}_lte` | `${N}_lt`]: S };

function rangeShape<N extends string, S>(name: N, schema: S): Bounds<N, S> {
  return Object.fromEntries(
    ["gte", "gt", "lte", "lt"].map((bound) => [`${name}_${bound}`, schema]),
  ) as Bounds<N, S>;
}

type Suffixed<N extends string, T> = Partial<
  Record<`${N}_gte` | `${N}_gt` | `${N}_lte` | `${N}_lt`, T | null>
>;

/** Collects the parameters of `instantRange`. */
export function instantsOf<N extends string>(query: Suffixed<N, Date>, name: N): Range<Date> {
  return rangeOf(query, name);
}

/** Collects the parameters of `numberRange`. */
function numbersOf<N extends string>(query: Suffixed<N, number>, name: N): Range<number> {
  return rangeOf(query, name);
}

function rangeOf<N extends string, T>(query: Suffixed<N, T>, name: N): Range<T> {
  return {
    gte: query[`${name}_gte`],
    gt: query[`${name}_gt`],
    lte: query[`${name}_lte`],
    lt: query[`${name}_lt`],
  };
}

/** Fields of Airflow without a meaning here: null is accepted, other values are rejected. */
export const unused = z.null().optional();

export const RUN_STATES = ["queued", "running", "success", "failed"] as const;
export const TASK_STATES = [
  "removed",
  "scheduled",
  "queued",
  "running",
  "success",
  "restarting",
  "failed",
  "up_for_retry",
  "up_for_reschedule",
  "upstream_failed",
  "skipped",
  "deferred",
] as const;

/** Dates in responses are ISO strings. */
export const date = z.string();
export const nullableDate = z.string().nullable();

export function iso(value: Date): string;
export function iso(value: Date | null): string | null;
export function iso(value: Date | null): string | null {
  return value === null ? null : value.toISOString();
}

/** Seconds between two instants; until now if the second is missing. */
export function seconds(from: Date | null, to: Date | null): number | null {
  return from === null || to === null ? null : (to.getTime() - from.getTime()) / 1000;
}

type RangeValues = Parameters<
  typeof instantsOf<"run_after" | "logical_date" | "start_date" | "end_date">
>[0] &
  Parameters<typeof numbersOf<"duration">>[0];

/** The range filters shared by runs and task instances. */
export function rangesOf(query: RangeValues) {
  return {
    durationSeconds: numbersOf(query, "duration"),
    endedAt: instantsOf(query, "end_date"),
    logicalDate: instantsOf(query, "logical_date"),
    runAfter: instantsOf(query, "run_after"),
    startedAt: instantsOf(query, "start_date"),
  };
}

/** Any JSON value. Registered in place: a copy would refer to a schema without a name. */
export const jsonValue = z.json().register(z.globalRegistry, { id: "JsonValue" });
