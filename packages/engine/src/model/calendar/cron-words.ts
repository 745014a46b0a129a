/** Describes a cron expression in words: "At 02:00, Monday to Friday". */
import { cronParts, parseCron } from "./cron-expression.ts";

const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"] as const;
const MONTHS = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
] as const;
const ORDINALS = ["first", "second", "third", "fourth", "fifth"] as const;
/** Up to this many times of day are listed one by one. */
const LISTED_TIMES = 6;

export interface CronWords {
  readonly text: string;
  /** The expression fires in every hour of every day, so the zone affects at most its minutes. */
  readonly isEveryHour: boolean;
}

/** Throws a ModelError if the expression is invalid. */
export function cronWords(expression: string): CronWords {
  const fields = parseCron(expression);
  const { dayOfMonth, month, weekday } = cronParts(expression);
  const days = dayPhrase(dayOfMonth, weekday);
  const months = isOpen(month) ? null : `in ${listed(runs([...fields.months], (each) => MONTHS[each - 1]!))}`;
  const isEveryHour = fields.hours.length === 24 && days === null && months === null;
  const time = timePhrase(fields);
  const isOncePerTime = /^At \d/.test(time);
  const everyDay = days === null && months === null && isOncePerTime ? "every day" : null;
  return { text: [time, days ?? everyDay, months].filter((part) => part !== null).join(", "), isEveryHour };
}

interface Times {
  readonly seconds: readonly number[];
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
}

function timePhrase({ hours, minutes, seconds }: Times): string {
  const isOnTheMinute = seconds.length === 1 && seconds[0] === 0;
  if (seconds.length === 1 && minutes.length * hours.length <= LISTED_TIMES) {
    const times = hours.flatMap((hour) =>
      minutes.map((minute) => [hour, minute, ...(isOnTheMinute ? [] : seconds)]),
    );
    return `At ${listed(times.map((time) => time.map(twoDigits).join(":")))}`;
  }
  const within = withinMinute(seconds);
  const hourly = minutes.length === 1 ? hourlyPhrase(hours, minutes[0]!) : null;
  if (hourly !== null) return [hourly, within].filter((part) => part !== null).join(", ");
  const everyMinutes = stepOf(minutes, 60);
  const often =
    everyMinutes === 1
      ? (within ?? "every minute")
      : everyMinutes === null
        ? `at minutes ${listed(runs(minutes, String))} of the hour`
        : `every ${everyMinutes} minutes`;
  const rest = everyMinutes === 1 ? null : within;
  return capital([often, hourPhrase(hours), rest].filter((part) => part !== null).join(", "));
}

/** A phrase for the same minute of many hours. */
function hourlyPhrase(hours: readonly number[], minute: number): string | null {
  const at = minute === 0 ? "" : `, at minute ${minute}`;
  const step = stepOf(hours, 24);
  if (step !== null) return `${step === 1 ? "Every hour" : `Every ${step} hours`}${at}`;
  const [first, last] = [hours[0]!, hours.at(-1)!];
  if (last - first !== hours.length - 1) return null;
  return `Every hour from ${clock(first, minute)} to ${clock(last, minute)}`;
}

function hourPhrase(hours: readonly number[]): string | null {
  const step = stepOf(hours, 24);
  if (step === 1) return null;
  if (step !== null) return `in every ${ordinal(step)} hour`;
  const spans = spansOf(hours).map(([from, to]) => `from ${clock(from, 0)} to ${clock(to, 59)}`);
  return listed(spans);
}

function withinMinute(seconds: readonly number[]): string | null {
  if (seconds.length === 1 && seconds[0] === 0) return null;
  const step = stepOf(seconds, 60);
  if (step !== null) return step === 1 ? "every second" : `every ${step} seconds`;
  return `at second${seconds.length === 1 ? "" : "s"} ${listed(runs(seconds, String))} of the minute`;
}

/** null: every day. */
function dayPhrase(dayOfMonth: string, weekday: string): string | null {
  const date = isOpen(dayOfMonth) ? null : datePhrase(dayOfMonth);
  const week = isOpen(weekday) ? null : weekdayPhrase(weekday);
  if (date === null || week === null) return date ?? week;
  // A field that begins with a star restricts the other one: both have to match.
  const both = /^[*?]/.test(dayOfMonth) || /^[*?]/.test(weekday);
  return both ? `${date} if it is ${week}` : `${date} or ${week}`;
}

function datePhrase(part: string): string {
  const step = /^[*?]\/(\d+)$/.exec(part);
  if (step) return `every ${ordinal(Number(step[1]))} day of the month`;
  const items = part.split(",");
  const last = items.some((item) => /^L$/i.test(item)) ? ["the last day"] : [];
  const rest = items.filter((item) => !/^L$/i.test(item)).join(",");
  const numbers = rest === "" ? [] : daysIn(rest);
  const days =
    numbers.length === 0 ? [] : [`day${numbers.length === 1 ? "" : "s"} ${listed(runs(numbers, String))}`];
  return `on ${listed([...days, ...last])} of the month`;
}

/** Uses the parser, so that ranges and steps mean the same. */
function daysIn(part: string): number[] {
  const { isDay } = parseCron(`0 0 ${part} * *`);
  return Array.from({ length: 31 }, (_, index) => index + 1).filter((dayOfMonth) =>
    isDay({ dayOfMonth, weekday: 0, daysInMonth: 31 }),
  );
}

function weekdayPhrase(part: string): string {
  const items = part.split(",");
  const special = items.flatMap((item) => {
    const nth = /^(\w+)#([1-5])$/.exec(item);
    if (nth) return [`the ${ORDINALS[Number(nth[2]) - 1]} ${weekdayNames(nth[1]!)} of the month`];
    const last = /^(\w+)L$/i.exec(item);
    return last ? [`the last ${weekdayNames(last[1]!)} of the month`] : [];
  });
  const plain = items.filter((item) => !/#|^\w+L$/i.test(item)).join(",");
  return listed([...(plain === "" ? [] : [weekdayNames(plain)]), ...special]);
}

/** Monday first: "Saturday and Sunday", not "Sunday and Saturday". */
function weekdayNames(part: string): string {
  const { isDay } = parseCron(`0 0 * * ${part}`);
  const days = [1, 2, 3, 4, 5, 6, 7].filter((day) =>
    isDay({ dayOfMonth: 15, weekday: day % 7, daysInMonth: 31 }),
  );
  return listed(runs(days, (day) => WEEKDAYS[day % 7]!));
}

/** k if the numbers are exactly 0, k, 2k, … and k divides the cycle; otherwise null. */
function stepOf(numbers: readonly number[], cycle: number): number | null {
  const step = cycle / numbers.length;
  return Number.isInteger(step) && step < cycle && numbers.every((each, index) => each === index * step)
    ? step
    : null;
}

/** Three or more consecutive numbers become "a to b". */
function runs(numbers: readonly number[], name: (number: number) => string): string[] {
  return spansOf(numbers).flatMap(([from, to]) => {
    if (to - from >= 2) return [`${name(from)} to ${name(to)}`];
    return from === to ? [name(from)] : [name(from), name(to)];
  });
}

function spansOf(numbers: readonly number[]): [number, number][] {
  const spans: [number, number][] = [];
  for (const number of numbers) {
    const last = spans.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else spans.push([number, number]);
  }
  return spans;
}

function listed(texts: readonly string[]): string {
  return texts.length < 2 ? (texts[0] ?? "") : `${texts.slice(0, -1).join(", ")} and ${texts.at(-1)}`;
}

function isOpen(part: string): boolean {
  return part === "*" || part === "?";
}

function ordinal(number: number): string {
  const teens = number % 100 >= 11 && number % 100 <= 13;
  const ending = teens ? "th" : (["th", "st", "nd", "rd"][number % 10] ?? "th");
  return `${number}${ending}`;
}

function clock(hour: number, minute: number): string {
  return `${twoDigits(hour)}:${twoDigits(minute)}`;
}

function twoDigits(number: number): string {
  return String(number).padStart(2, "0");
}

function capital(text: string): string {
  return text[0]!.toUpperCase() + text.slice(1);
}
