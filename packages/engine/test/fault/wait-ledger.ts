/**
 * The reports of waiting tasks and triggers about themselves, written outside of the system under test. Times are those of
 * the machine's clock, which its database shares.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import type { Json } from "@tradewind/sdk/manifest";

/** A line of a task's attempt. */
export interface WaitLine {
  readonly dag: string;
  readonly run: string;
  readonly task: string;
  readonly try: number;
  readonly attempt: string;
  /** "once": ran the `once` step before the wait; "pass": resumed after the wait; "end": ended. */
  readonly what: "start" | "once" | "pass" | "end";
  /** The index of the wait in the try, from 0. */
  readonly step: number | null;
  /** For "pass": the result of the wait; `TIMED_OUT` if there was none. */
  readonly event: Json;
  readonly wall: number;
}

export const TIMED_OUT = "timed out";

/** A line of a trigger. */
export interface TriggerLine {
  readonly kind: string;
  /** The gate or the letter. */
  readonly name: string;
  /** "acknowledged": its next event was requested. */
  readonly did: "yielded" | "acknowledged";
  /** The process of the triggerer in whose runner it ran. */
  readonly by: number;
  readonly wall: number;
}

/** The lines of one attempt. */
export interface WitnessedAttempt {
  readonly start: WaitLine;
  readonly done: readonly number[];
  readonly passed: readonly WaitLine[];
  readonly isEnded: boolean;
}

/** One write with O_APPEND: lines of many processes never mix. */
export function recordWait(line: Omit<WaitLine, "wall">): void {
  appendFileSync(ledgerPath(), `${JSON.stringify({ ...line, wall: Date.now() })}\n`);
}

export function recordTrigger(line: Omit<TriggerLine, "wall" | "by">): void {
  const whole: TriggerLine = { ...line, by: process.ppid, wall: Date.now() };
  appendFileSync(`${ledgerPath()}.triggers`, `${JSON.stringify(whole)}\n`);
}

function ledgerPath(): string {
  return process.env.TRADEWIND_TASK_LEDGER as string;
}

/** @throws if an attempt was started twice or acted without a start: no fault excuses that. */
export function witnessedAttempts(path: string): Map<string, WitnessedAttempt> {
  const byAttempt = Map.groupBy(linesOf<WaitLine>(path), (line) => line.attempt);
  return new Map(
    [...byAttempt].map(([attempt, lines]) => {
      const [start, ...rest] = lines as [WaitLine, ...WaitLine[]];
      if (start.what !== "start" || rest.some((line) => line.what === "start"))
        throw new Error(`attempt ${attempt} was not started exactly once: ${JSON.stringify(lines)}`);
      const of = (what: WaitLine["what"]) => rest.filter((line) => line.what === what);
      const done = of("once").map((line) => line.step ?? -1);
      return [attempt, { start, done, passed: of("pass"), isEnded: of("end").length > 0 }];
    }),
  );
}

export function triggerLines(path: string): TriggerLine[] {
  return linesOf<TriggerLine>(`${path}.triggers`);
}

function linesOf<L>(path: string): L[] {
  if (!existsSync(path)) return [];
  const whole = readFileSync(path, "utf8").split("\n").slice(0, -1);
  return whole.map((line) => JSON.parse(line) as L);
}
