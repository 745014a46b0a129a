/** Which triggers have blocked the event loop of their process since the triggerer started, by the name of their class. */
import type { BlockedTrigger, TriggererFacts } from "../../store/trigger/triggers.ts";
import type { RunnerReports } from "../contract.ts";

type Stall = Parameters<RunnerReports["blocked"]>[0];

/** Other processes read this row all the time, so it must stay short. */
const MOST_REPORTED = 5;
const MOST_TEXT = 200;

export class BlockedTriggers {
  /** In the order of their last stalls. */
  readonly #byKind = new Map<string | null, BlockedTrigger>();
  #count = 0;

  record(stall: Stall, at = new Date()): Stall {
    const { kind, ms, stack } = stall;
    this.#count++;
    const former = this.#byKind.get(kind);
    this.#byKind.delete(kind);
    this.#byKind.set(kind, {
      kind,
      count: (former?.count ?? 0) + 1,
      longestMs: Math.round(Math.max(former?.longestMs ?? 0, ms)),
      lastAt: at.toISOString(),
      place: placeOf(stack).slice(0, MOST_TEXT),
    });
    const [oldest] = this.#byKind.keys();
    if (this.#byKind.size > MOST_REPORTED && oldest !== undefined) this.#byKind.delete(oldest);
    return stall;
  }

  /** The latest first. */
  facts(): Pick<TriggererFacts, "blocked" | "blockedBy"> {
    return { blocked: this.#count, blockedBy: [...this.#byKind.values()].reverse() };
  }
}

/** The innermost frame outside of Node itself; empty if the stack has none. */
export function placeOf(stack: string): string {
  return (
    stack
      .split("\n")
      .find((line) => line.includes("at ") && !line.includes("node:"))
      ?.trim() ?? ""
  );
}
