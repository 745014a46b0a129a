/** Detects that a task has made no call of its `ctx` for a period of real time. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { AttemptCall } from "../run/timed-attempt.ts";

export class Silence {
  readonly #onSilence: () => void;
  readonly #timer: NodeJS.Timeout;
  #calls = 0;
  #isSilent = false;
  #isOver = false;

  constructor(afterMs: number, onSilence: () => void) {
    this.#onSilence = onSilence;
    this.#timer = setTimeout(() => void this.#drainTimers(), Math.max(1, afterMs));
  }

  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** Called at each call of the task's `ctx`. */
  break(): void {
    if (this.#isOver) return;
    this.#calls++;
    this.#isSilent = false;
    this.#timer.refresh();
  }

  /** Stops the detection. */
  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  /** If the process was blocked, the task was, too: pending work of the task runs first. */
  async #drainTimers(): Promise<void> {
    const calls = this.#calls;
    for (let turn = 0; turn < 2; turn++) await nextTurn();
    if (this.#isOver || calls !== this.#calls) return;
    this.#isSilent = true;
    this.#onSilence();
  }
}

type Host = AttemptCall["host"];

/** Calls of the host break the silence. */
export function audible(host: Host, silence: Silence): Host {
  const heard = <Args extends unknown[], T>(call: (...args: Args) => T) => {
    return (...args: Args): T => {
      silence.break();
      return call(...args);
    };
  };
  return {
    log: heard(host.log),
    output: heard(host.output),
    variable: heard(host.variable),
    connection: heard(host.connection),
    recall: heard(host.recall),
    remember: heard(host.remember),
    inStep: host.inStep,
    currentStep: host.currentStep,
    check: heard(host.check),
    triggerRun: heard(host.triggerRun),
    runEnd: heard(host.runEnd),
    isLatest: heard(host.isLatest),
    send: heard(host.send),
    ...(host.startSignals && { startSignals: heard(host.startSignals) }),
  };
}
