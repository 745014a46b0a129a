/** The earliest possible end of a wait, and the time until it was reported. */
import type { Json } from "@tradewind/sdk/manifest";
import type { GoneTrigger } from "./wait-audit.ts";
import type { WaitRow } from "./wait-verdict.ts";
import { gateName, type WaitScript } from "./waiting-dag.ts";

interface Notified {
  readonly row: WaitRow;
  readonly wait: WaitScript;
  readonly conf: Readonly<Record<string, Json>>;
  readonly trigger: GoneTrigger | undefined;
}

/** The rounding error of a timestamp's microseconds in a double. */
const ROUNDING_MS = 0.01;
/** The owner of the run decides timeouts. Its estimate of the database clock is as exact as a round trip is short. */
const OWNERS_CLOCK_MS = 500;

export class WaitClock {
  readonly #opened: ReadonlyMap<string, number>;
  readonly #delays: number[] = [];

  /** @param opened When each gate was opened. */
  constructor(opened: ReadonlyMap<string, number>) {
    this.#opened = opened;
  }

  *early(told: Notified): Iterable<string> {
    const { row, wait, trigger } = told;
    if (row.fired_at === null) {
      const left = (row.timeout_at ?? Number.POSITIVE_INFINITY) - (row.ended_at ?? 0);
      if (left > OWNERS_CLOCK_MS) yield `timed out ${left} ms early`;
      return;
    }
    const earliest = this.#earliest(told);
    if (row.fired_at < earliest - ROUNDING_MS) yield `fired ${earliest - row.fired_at} ms early`;
    if (trigger === undefined) yield "has fired, but its trigger still exists";
    else if (trigger.is_timed && row.fired_at < trigger.wake_at - ROUNDING_MS)
      yield `fired ${trigger.wake_at - row.fired_at} ms before its trigger was due`;
    if (wait.kind === "gate") this.#delays.push(row.fired_at - Math.max(earliest, row.deferred_at));
  }

  /** The median and the longest time from an open, awaited gate until the event was stored. */
  notifiedAfterMs(): [number, number] {
    const sorted = this.#delays.toSorted((a, b) => a - b).map(Math.round);
    return [sorted[sorted.length >> 1] ?? 0, sorted.at(-1) ?? 0];
  }

  #earliest({ row, wait, conf }: Notified): number {
    const moment = Date.parse(String(conf["moment"]));
    switch (wait.kind) {
      case "delta":
      case "race":
        return row.deferred_at + wait.ms;
      case "moment":
        return moment;
      case "gate":
      case "twin":
      case "ending":
        return this.#open(wait.gate, conf);
      case "cold":
        return Math.max(moment, this.#open(wait.gate, conf));
      case "joint":
        return Math.max(soonOf(row), this.#open(wait.gate, conf));
      case "starve":
        return Number.POSITIVE_INFINITY;
      case "busy":
        return 0;
    }
  }

  #open(gate: string, conf: Notified["conf"]): number {
    return this.#opened.get(gateName(gate, String(conf["group"]))) ?? Number.POSITIVE_INFINITY;
  }
}

/** A joint wait reports the moment that was a part of it. */
function soonOf({ outcome }: WaitRow): number {
  const payload = outcome?.kind === "event" ? (outcome.payload as { soon?: string } | null) : null;
  return Date.parse(payload?.soon ?? "");
}
