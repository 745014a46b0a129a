/**
 * When a triggerer looks at signals: when somebody sent some, or the engine told something that is waited for; again at once while there is more than one look can deal
 * with, soon while an older open transaction holds something back (nobody tells when that one ends), and now and then
 * where NOTIFY does not work. Not at all while nobody waits and no DAG is scheduled on them.
 */

import { type Topic, tellsOfStates, type WakeUps } from "../../job/wake-up.ts";
import type { Logger } from "../../service/logger.ts";
import type { Database } from "../../store/database/database.ts";
import { SignalSchedules } from "../schedule/signal-schedules.ts";
import type { EngineTriggers, Finding } from "./engine-triggers.ts";

/** For one look: a turn must leave time for everything else. */
const LOOK_MS = 200;
const HELD_MS = 8;
const HELD_MAX_MS = 64;
/** Without NOTIFY. */
const DEAF_MS = 500;

export interface SignalWatchOptions {
  readonly database: Database;
  readonly logger: Logger;
  readonly engine: EngineTriggers;
  /** Asks for a look: now, or after so many milliseconds. */
  readonly ask: (ms: number) => void;
  readonly isDeaf: () => boolean;
  readonly wakeUps: Pick<WakeUps, "wantStates">;
  readonly onFound: (findings: readonly Finding[]) => void;
  /** Runs were made. */
  readonly onRuns: () => void;
}

export class SignalWatch {
  readonly #options: SignalWatchOptions;
  readonly #schedules: SignalSchedules;
  #restUntil = 0;
  #heldMs = HELD_MS;

  constructor(options: SignalWatchOptions) {
    this.#options = options;
    this.#schedules = new SignalSchedules(options);
  }

  /** A look that takes long is followed by as long a rest. */
  hear(topic: Topic | ""): void {
    const isWanted = topic === "signals" ? !this.#isIdle : tellsOfStates(topic) && this.#wantsStates;
    if (isWanted) this.#options.ask(Math.max(0, this.#restUntil - performance.now()));
    if (topic === "dags" || topic === "") this.changed();
  }

  /** DAGs may have changed. */
  changed(): void {
    this.#schedules.changed();
    this.#options.ask(0);
  }

  async look(): Promise<void> {
    const { ask, engine, isDeaf, onFound } = this.#options;
    const begun = performance.now();
    const deadline = begun + LOOK_MS;
    let [isComplete, isHeld] = [true, false];
    if (engine.waitsForSignals) {
      const waits = await engine.lookAtSignals(deadline);
      // Before anything else can fail: they are told once.
      onFound(waits.findings);
      ({ isComplete, isHeld } = waits);
    }
    const schedules = await this.#schedules.look(deadline);
    this.#options.wakeUps.wantStates(this, this.#wantsStates);
    this.#restUntil = 2 * performance.now() - begun;
    if (!isComplete || !schedules.isComplete) return ask(0);
    isHeld ||= schedules.isHeld;
    this.#heldMs = isHeld ? Math.min(2 * this.#heldMs, HELD_MAX_MS) : HELD_MS;
    const next = Math.min(
      schedules.againMs ?? Number.POSITIVE_INFINITY,
      isHeld ? this.#heldMs : Number.POSITIVE_INFINITY,
      isDeaf() && !this.#isIdle ? DEAF_MS : Number.POSITIVE_INFINITY,
    );
    if (Number.isFinite(next)) ask(next);
  }

  get #isIdle(): boolean {
    return !this.#options.engine.waitsForSignals && this.#schedules.size === 0;
  }

  get #wantsStates(): boolean {
    return this.#options.engine.waitsForStates || this.#schedules.wantsStates;
  }
}
