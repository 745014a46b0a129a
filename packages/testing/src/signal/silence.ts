/** Whether a task has been silent for a while, in real time: no call of its `ctx`. */
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
    this.#timer = setTimeout(() => void this.#settle(), Math.max(1, afterMs));
  }

  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** The task, making itself heard. */
  break(): void {
    if (this.#isOver) return;
    this.#calls++;
    this.#isSilent = false;
    this.#timer.refresh();
  }

  /** Nobody cares any more. */
  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  /** Where the process was held up, the task was too: what is due for it gets its turn first. */
  async #settle(): Promise<void> {
    const calls = this.#calls;
    for (let turn = 0; turn < 2; turn++) await nextTurn();
    if (this.#isOver || calls !== this.#calls) return;
    this.#isSilent = true;
    this.#onSilence();
  }
}

type Host = AttemptCall["host"];

/** What a task asks for breaks its silence. */
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
    ...(host.startedBy && { startedBy: heard(host.startedBy) }),
  };
}
