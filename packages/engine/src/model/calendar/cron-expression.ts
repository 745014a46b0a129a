/**
 * Parses cron expressions: five fields (minute hour day-of-month month day-of-week), or six with seconds in front, or a
 * nickname such as `@daily`. Supports lists, ranges, steps, month and weekday names, `?`, `L` (last day of the month), `5L`
 * (last Friday) and `5#2` (second Friday). If both day fields are restricted, a day has to match only one of them.
 */
import { ModelError } from "../run/errors.ts";

export interface CronFields {
  readonly seconds: readonly number[];
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  /** 1 to 12. */
  readonly months: ReadonlySet<number>;
  readonly isDay: (date: CalendarDay) => boolean;
}

/** A calendar day without a time zone. */
interface CalendarDay {
  readonly dayOfMonth: number;
  /** 0 = Sunday. */
  readonly weekday: number;
  readonly daysInMonth: number;
}

interface Field {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly names?: readonly string[];
}

const SECOND: Field = { name: "second", min: 0, max: 59 };
const MINUTE: Field = { name: "minute", min: 0, max: 59 };
const HOUR: Field = { name: "hour", min: 0, max: 23 };
const DAY_OF_MONTH: Field = { name: "day of month", min: 1, max: 31 };
const MONTH: Field = {
  name: "month",
  min: 1,
  max: 12,
  names: ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
/** 7 is Sunday as well. */
const WEEKDAY: Field = {
  name: "day of week",
  min: 0,
  max: 7,
  names: ["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

const NICKNAMES: Readonly<Record<string, string>> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};

/** The text of each field; "0" for omitted seconds. */
export interface CronParts {
  readonly second: string;
  readonly minute: string;
  readonly hour: string;
  readonly dayOfMonth: string;
  readonly month: string;
  readonly weekday: string;
}

export function cronParts(expression: string): CronParts {
  const text = expression.trim();
  const plain = NICKNAMES[text.toLowerCase()] ?? text;
  const parts = plain.split(/\s+/);
  if (text.startsWith("@") && plain === text) {
    throw invalid(expression, `unknown nickname; use one of ${Object.keys(NICKNAMES).join(", ")}`);
  }
  if (parts.length !== 5 && parts.length !== 6) {
    const found =
      text === "" ? "it is empty" : `it has ${parts.length} field${parts.length === 1 ? "" : "s"}`;
    throw invalid(
      expression,
      `${found}; write "minute hour day-of-month month day-of-week", optionally with seconds in front`,
    );
  }
  const [second, minute, hour, dayOfMonth, month, weekday] =
    parts.length === 6 ? (parts as Six) : (["0", ...parts] as Six);
  return { second, minute, hour, dayOfMonth, month, weekday };
}

/** Throws a ModelError that names the field and its valid values. */
export function parseCron(expression: string): CronFields {
  const { second, minute, hour, dayOfMonth, month, weekday } = cronParts(expression);
  const numbers = (part: string, field: Field) => readNumbers(expression, part, field);
  const fields: CronFields = {
    seconds: numbers(second, SECOND),
    minutes: numbers(minute, MINUTE),
    hours: numbers(hour, HOUR),
    months: new Set(numbers(month, MONTH)),
    isDay: readDays(expression, dayOfMonth, weekday),
  };
  refuseImpossibleDay(expression, fields);
  return fields;
}

type Six = [string, string, string, string, string, string];

function readDays(expression: string, dayOfMonth: string, weekday: string): CronFields["isDay"] {
  const byDate = readDatePart(expression, dayOfMonth);
  const byWeekday = readWeekdayPart(expression, weekday);
  // As in every cron, `*/2` counts as unrestricted here: it allows "every second day of the month, if it is a Monday".
  const isOpenDate = /^[*?]/.test(dayOfMonth);
  const isOpenWeekday = /^[*?]/.test(weekday);
  if (isOpenDate || isOpenWeekday) return (date) => byDate(date) && byWeekday(date);
  return (date) => byDate(date) || byWeekday(date);
}

function readDatePart(expression: string, part: string): CronFields["isDay"] {
  const items = part.split(",");
  const hasLast = items.some((item) => item.toUpperCase() === "L");
  const rest = items.filter((item) => item.toUpperCase() !== "L");
  const days = new Set(rest.length > 0 ? readNumbers(expression, rest.join(","), DAY_OF_MONTH) : []);
  return ({ dayOfMonth, daysInMonth }) => days.has(dayOfMonth) || (hasLast && dayOfMonth === daysInMonth);
}

function readWeekdayPart(expression: string, part: string): CronFields["isDay"] {
  const tests = part.split(",").map((item): CronFields["isDay"] => {
    const nth = /^(\w+)#([1-5])$/.exec(item);
    const last = /^(\w+)L$/i.exec(item);
    const days = new Set(
      readNumbers(expression, nth?.[1] ?? last?.[1] ?? item, WEEKDAY).map((day) => day % 7),
    );
    if (nth) return (date) => days.has(date.weekday) && Math.ceil(date.dayOfMonth / 7) === Number(nth[2]);
    if (last) return (date) => days.has(date.weekday) && date.dayOfMonth + 7 > date.daysInMonth;
    return (date) => days.has(date.weekday);
  });
  return (date) => tests.some((test) => test(date));
}

/** Sorted and without duplicates. */
function readNumbers(expression: string, part: string, field: Field): number[] {
  const numbers = new Set<number>();
  for (const item of part.split(",")) {
    const match = /^(?:([*?])|(\w+)(?:-(\w+))?)(?:\/(\d+))?$/.exec(item);
    if (!match)
      throw invalid(
        expression,
        `invalid ${field.name} "${item}"; use ${field.min}-${field.max}, *, lists, ranges or steps`,
      );
    const [, star, first, last, stepText] = match;
    const step = stepText === undefined ? 1 : Number(stepText);
    if (step < 1) throw invalid(expression, `the step of ${field.name} "${item}" must be 1 or more`);
    const from = star ? field.min : readNumber(expression, first!, field);
    // `5/15` is short for "from 5 to the maximum, every 15th".
    const open = star !== undefined || stepText !== undefined;
    const to = last !== undefined ? readNumber(expression, last, field) : open ? field.max : from;
    if (to < from)
      throw invalid(expression, `${field.name} range "${item}" is reversed; write it as two ranges`);
    for (let n = from; n <= to; n += step) numbers.add(n);
  }
  return [...numbers].sort((a, b) => a - b);
}

function readNumber(expression: string, text: string, field: Field): number {
  const named = field.names?.indexOf(text.toLowerCase()) ?? -1;
  const value =
    named >= 0
      ? named + (field.names?.length === 12 ? 1 : 0)
      : /^\d+$/.test(text)
        ? Number(text)
        : Number.NaN;
  if (value >= field.min && value <= field.max) return value;
  throw invalid(
    expression,
    `invalid ${field.name} "${text}"; use ${field.min}-${field.max}${field.names ? ` or ${field.names.join(", ")}` : ""}`,
  );
}

/** An expression such as "30 2 31 2 *" never fires: it is rejected when it is written. */
function refuseImpossibleDay(expression: string, fields: CronFields): void {
  const longest = (month: number) => (month === 2 ? 29 : [4, 6, 9, 11].includes(month) ? 30 : 31);
  for (const month of fields.months) {
    for (let daysInMonth = month === 2 ? 28 : longest(month); daysInMonth <= longest(month); daysInMonth++) {
      for (let dayOfMonth = 1; dayOfMonth <= daysInMonth; dayOfMonth++) {
        for (let weekday = 0; weekday < 7; weekday++) {
          if (fields.isDay({ dayOfMonth, weekday, daysInMonth })) return;
        }
      }
    }
  }
  throw invalid(expression, "no day of any year matches; check day of month and month");
}

function invalid(expression: string, problem: string): ModelError {
  return new ModelError("CRON_INVALID", `Invalid cron expression "${expression}": ${problem}.`);
}
