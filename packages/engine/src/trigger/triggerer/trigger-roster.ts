/**
 * The triggers that one process is to run, the triggers that its current child runs, and the bundles that the child has
 * loaded. A bundle stays in the memory of a child for as long as the child lives, even if no trigger uses it.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { TriggerOutcome } from "../../model/index.ts";
import type { TriggerWork } from "../contract.ts";
import type { Assignment, Culprit } from "../process/runner-protocol.ts";

/** Number of ended triggers that are still known by name. */
const MAX_FORMER = 100;

/** One trigger that is to run. */
export interface Entry {
  readonly work: TriggerWork;
  /** The serial of its start in the current child; null while it awaits one. */
  serial: number | null;
  hasFired: boolean;
  /** For the next child; built-in triggers only. */
  lastEvent: Json | undefined;
  /** The serial whose event was reported and awaits its acknowledgement. */
  unacknowledged: number | null;
  /** An outcome from a new child while an event of the last child is still unacknowledged. */
  held: TriggerOutcome | null;
}

export function newEntry(work: TriggerWork): Entry {
  return {
    work,
    serial: null,
    hasFired: work.lastEvent !== undefined,
    lastEvent: work.lastEvent,
    unacknowledged: null,
    held: null,
  };
}

export class TriggerRoster {
  /** By the trigger's id; triggers in the current child also by serial. */
  readonly #entries = new Map<number, Entry>();
  readonly #serials = new Map<number, Entry>();
  /** Ended triggers, the oldest first, by serial. */
  readonly #former = new Map<number, TriggerWork>();
  /** Number of running triggers per bundle that the current child has loaded. */
  readonly #bundles = new Map<string, number>();
  readonly #nextSerial: () => number;
  #deadBundles = 0;

  /** @param nextSerial Shared by all children, so that a message is never attributed to another child. */
  constructor(nextSerial: () => number) {
    this.#nextSerial = nextSerial;
  }

  get size(): number {
    return this.#entries.size;
  }

  get entries(): Entry[] {
    return [...this.#entries.values()];
  }

  /** Number of loaded bundles in the current child of which no trigger runs any more. */
  get deadBundles(): number {
    return this.#deadBundles;
  }

  /** True if no event awaits its acknowledgement. */
  get isCalm(): boolean {
    for (const { unacknowledged } of this.#entries.values()) if (unacknowledged !== null) return false;
    return true;
  }

  bySerial(serial: number): Entry | undefined {
    return this.#serials.get(serial);
  }

  /** The trigger of a serial, also if it ended a moment ago. */
  workOf(serial: number): TriggerWork | undefined {
    return this.#serials.get(serial)?.work ?? this.#former.get(serial);
  }

  /** A trigger that this process runs from now on; another process may have run it before. */
  add(entry: Entry): void {
    entry.serial = null;
    entry.held = null;
    this.#entries.set(entry.work.id, entry);
  }

  /** The trigger is still to run, and in no child. */
  isWaiting(entry: Entry): boolean {
    return this.#entries.get(entry.work.id) === entry && entry.serial === null;
  }

  /** Assigns the trigger to the current child. */
  assign(entry: Entry): Assignment {
    const serial = this.#nextSerial();
    entry.serial = serial;
    this.#serials.set(serial, entry);
    const { lastEvent, hasFired } = entry;
    const { args, bundlePath, id, kind } = entry.work;
    if (bundlePath !== null) {
      const users = this.#bundles.get(bundlePath);
      if (users === 0) this.#deadBundles--;
      this.#bundles.set(bundlePath, (users ?? 0) + 1);
    }
    return { serial, id, kind, args, bundlePath, hasFired, ...(lastEvent !== undefined && { lastEvent }) };
  }

  forget(entry: Entry): void {
    if (this.#entries.get(entry.work.id) === entry) this.#entries.delete(entry.work.id);
    if (entry.serial === null || !this.#serials.delete(entry.serial)) return;
    this.#former.set(entry.serial, entry.work);
    const [oldest] = this.#former.keys();
    if (this.#former.size > MAX_FORMER && oldest !== undefined) this.#former.delete(oldest);
    const { bundlePath } = entry.work;
    if (bundlePath === null) return;
    const users = (this.#bundles.get(bundlePath) ?? 1) - 1;
    this.#bundles.set(bundlePath, users);
    if (users === 0) this.#deadBundles++;
  }

  /** No child runs any of them. */
  reclaim(): void {
    this.#serials.clear();
    this.#bundles.clear();
    this.#deadBundles = 0;
    for (const entry of this.#entries.values()) {
      entry.serial = null;
      entry.held = null;
    }
  }

  clear(): void {
    this.#entries.clear();
    this.#serials.clear();
  }

  /** A trigger, or all triggers of a bundle whose top level is the culprit. */
  culprits(who: NonNullable<Culprit>): Entry[] {
    if (typeof who === "string") {
      return [...this.#serials.values()].filter(({ work }) => work.bundlePath === who);
    }
    const entry = this.#serials.get(who);
    return entry === undefined ? [] : [entry];
  }

  /** The triggers that run in the current child. */
  running(): TriggerWork[] {
    return [...this.#serials.values()].map(({ work }) => work);
  }
}
