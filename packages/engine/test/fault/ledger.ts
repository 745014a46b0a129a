/** The reports of tasks about themselves, written outside of the system under test: the evidence for the verdict. */
import { existsSync, readFileSync } from "node:fs";
import type { TryOutcome } from "../reference/random-dag.ts";

export interface LedgerLine {
  readonly dag: string;
  readonly run: string;
  readonly task: string;
  readonly try: number;
  readonly attempt: string;
  /** "end": the work is done, and the attempt is about to report this outcome; "abort": it was cancelled, and stops. */
  readonly event: "start" | "end" | "abort";
  readonly outcome: TryOutcome;
  /** The items that an instance of a map runs for. */
  readonly label?: string;
  /** Milliseconds of the monotonic clock. */
  readonly at: number;
  readonly pid: number;
  /** The process that started it. */
  readonly scheduler: number;
}

/** The lines of one attempt. */
export interface Witnessed {
  readonly start: LedgerLine;
  readonly end: LedgerLine | null;
}

export class Ledger {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  lines(): LedgerLine[] {
    if (!existsSync(this.path)) return [];
    const whole = readFileSync(this.path, "utf8").split("\n").slice(0, -1);
    return whole.map((line) => JSON.parse(line) as LedgerLine);
  }

  /** @throws if an attempt was started twice or ended without a start: no fault excuses that. */
  attempts(): Map<string, Witnessed> {
    const found = new Map<string, Witnessed>();
    for (const line of this.lines()) {
      if (line.event === "abort") continue;
      const known = found.get(line.attempt);
      if (line.event === "start" ? known : !known || known.end)
        throw new Error(`attempt ${line.attempt} has a second ${line.event}: ${JSON.stringify(line)}`);
      if (known) found.set(line.attempt, { start: known.start, end: line });
      else found.set(line.attempt, { start: line, end: null });
    }
    return found;
  }

  /** Attempts that run now, or whose process died: a process that has written another line has finished the attempt. */
  underWay(): LedgerLine[] {
    const latest = new Map(this.lines().map((line) => [line.pid, line]));
    return [...latest.values()].filter(({ event }) => event === "start");
  }
}
