/**
 * When a triggerer polls signals: after a signal was sent or the engine published a state that a wait is for; again at
 * once while one poll cannot process everything; soon while an older open transaction hides signals (its end sends no
 * wake-up); and periodically where NOTIFY does not work. Never while there are no waits and no DAG is scheduled on signals.
 */

import { publishesStates, type Topic, type WakeUps } from "../../job/wake-up.ts";
import type { Logger } from "../../service/logger.ts";
import type { Database } from "../../store/database/database.ts";
import { SignalSchedules } from "../schedule/signal-schedules.ts";
import type { EngineTriggers, Finding } from "./engine-triggers.ts";

/** Time limit of one poll: the loop must have time left for everything else. */
const LOOK_MS = 200;
const HELD_MS = 8;
const HELD_MAX_MS = 64;
/** Poll interval without NOTIFY. */
const DEAF_MS = 500;

export interface SignalWatchOptions {
  readonly database: Database;
  readonly logger: Logger;
  readonly engine: EngineTriggers;
  /** Requests a poll now, or after this many milliseconds. */
  readonly requestRead: (ms: number) => void;
  readonly isDeaf: () => boolean;
  readonly wakeUps: Pick<WakeUps, "wantStates">;
  readonly onFound: (findings: readonly Finding[]) => void;
  /** Called after runs were created. */
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

  /** A long poll is followed by an equally long pause. */
  receive(topic: Topic | ""): void {
    const isWanted = topic === "signals" ? !this.#isIdle : publishesStates(topic) && this.#wantsStates;
    if (isWanted) this.#options.requestRead(Math.max(0, this.#restUntil - performance.now()));
    if (topic === "dags" || topic === "") this.changed();
  }

  /** DAGs may have changed. */
  changed(): void {
    this.#schedules.changed();
    this.#options.requestRead(0);
  }

  async read(): Promise<void> {
    const { requestRead: ask, engine, isDeaf, onFound } = this.#options;
    const begun = performance.now();
    const deadline = begun + LOOK_MS;
    let [isComplete, isHeld] = [true, false];
    if (engine.waitsForSignals) {
      const waits = await engine.readSignals(deadline);
      // First, before anything else can fail: findings are returned only once.
      onFound(waits.findings);
      ({ isComplete, isHeld } = waits);
    }
    const schedules = await this.#schedules.read(deadline);
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
