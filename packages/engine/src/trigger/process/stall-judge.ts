/**
 * Determines which trigger blocked all triggers of the child. A trigger may block and end before the stall is reported:
 * it is still named, because only the roster has removed it.
 */
import type { ErrorFacts } from "@tradewind/sdk/program";
import { durationText } from "@tradewind/sdk/wording";
import type { RunnerReports } from "../contract.ts";
import { placeOf } from "../triggerer/blocked-triggers.ts";
import type { Entry, TriggerRoster } from "../triggerer/trigger-roster.ts";
import type { StallReport } from "./runner-protocol.ts";
import { type Stall, StallWatch } from "./stall-watch.ts";

export interface StallConsequences {
  /** A stall has ended, or has lasted too long. */
  reported(stall: Parameters<RunnerReports["blocked"]>[0]): void;
  /** The stall lasts too long, and these triggers cause it. Empty: a trigger that was stopped meanwhile and is still running. */
  condemned(guilty: readonly Entry[], error: ErrorFacts): void;
}

export class StallJudge {
  readonly #roster: TriggerRoster;
  readonly #limitMs: number;
  readonly #watch: StallWatch;
  readonly #consequences: StallConsequences;

  constructor(roster: TriggerRoster, limitMs: number, consequences: StallConsequences) {
    this.#roster = roster;
    this.#limitMs = limitMs;
    this.#watch = new StallWatch(limitMs, () => this.#tooLong());
    this.#consequences = consequences;
  }

  /** The stall in progress. */
  get current(): Stall | null {
    return this.#watch.current;
  }

  record(report: StallReport): void {
    const stall = this.#watch.record(report);
    if (stall !== null) this.#report(stall, false);
  }

  end(): void {
    this.#watch.end();
  }

  /** Fails only a trigger that was observed several times in a row. */
  #tooLong(): void {
    const stall = this.#watch.current;
    if (stall === null || stall.blocker === null) return;
    const guilty = this.#roster.culprits(stall.blocker);
    this.#report({ ...stall, ms: Math.max(stall.ms, this.#limitMs) }, guilty.length > 0);
    const frame = placeOf(stall.stack);
    const place = frame === "" ? "" : ` ${frame}`;
    const longer = `for more than ${durationText(this.#limitMs)}`;
    const message = `The trigger blocked all triggers of its process ${longer} and was stopped${place}.`;
    this.#consequences.condemned(guilty, {
      ...{ name: "Error", message, code: "TRIGGER_BLOCKED" },
      stack: stall.stack,
    });
  }

  #report({ blocker, ms, stack }: Stall, isFailed: boolean): void {
    const work = typeof blocker === "number" ? this.#roster.workOf(blocker) : undefined;
    this.#consequences.reported({ id: work?.id ?? null, kind: work?.kind ?? null, ms, stack, isFailed });
  }
}
