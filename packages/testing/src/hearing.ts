/**
 * How the run hears its signals: one by one, in the order of the log, as the scheduler does (schedule/run-ears.ts of
 * the engine). A task with an `onSignal` is asked first what a signal means to it; until it has answered, what follows
 * waits. One that keeps failing is asked five times, and then the signal is a dead letter.
 */
import { namesMatch, type RunModel, type SignalFacts } from "@tradewind/engine/model";
import type { DagManifest } from "@tradewind/sdk/manifest";
import type { ReactOutcome, RunFacts } from "@tradewind/sdk/program";
import type { Clock } from "./clock.ts";
import type { Journal } from "./journal.ts";
import { ACTION_NAMESPACE } from "./outside.ts";
import type { Action } from "./result.ts";

interface Asked {
  readonly taskId: string;
  attempts: number;
  isOpen: boolean;
  /** Set: it failed, and is asked again then. */
  againAt: number | null;
  answer: Extract<ReactOutcome, { ok: true }>["action"] | null;
}

export interface HearingParts {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly manifest: DagManifest;
  readonly model: RunModel;
  readonly run: RunFacts;
  /** Asks the `onSignal` of a task. */
  readonly ask: (taskId: string, signal: SignalFacts) => Promise<ReactOutcome>;
  /** Tells the run, when it listens next. */
  readonly post: (news: () => void) => void;
}

const MAX_ATTEMPTS = 5;
const FIRST_DELAY_MS = 1_000;
const ORDERS = { START: "start", RESTART: "restart", STOP: "stop" } as const;

export class Hearing {
  readonly #parts: HearingParts;
  readonly #inbox: SignalFacts[] = [];
  /** About the first of the inbox. */
  #asked: Asked[] = [];

  constructor(parts: HearingParts) {
    this.#parts = parts;
  }

  /** It is not known yet what some `onSignal` answers. */
  get isAsking(): boolean {
    return this.#asked.some(({ isOpen }) => isOpen);
  }

  /** When an `onSignal` that failed is asked again; Infinity: none has. */
  nextAt(): number {
    return Math.min(...this.#asked.map(({ againAt }) => againAt ?? Number.POSITIVE_INFINITY));
  }

  take(signal: SignalFacts): void {
    this.#inbox.push(signal);
  }

  /** Puts what has arrived to the run, as far as nobody has to be asked first. */
  hear(): void {
    for (let signal = this.#inbox[0]; signal; signal = this.#inbox[0]) {
      this.#ask(signal);
      if (this.#asked.some(({ answer }) => answer === null)) return;
      this.#inbox.shift();
      this.#put(signal);
      this.#asked = [];
    }
  }

  #ask(signal: SignalFacts): void {
    const { clock, manifest, model } = this.#parts;
    if (model.drive === null || model.drive.closed !== null) return;
    for (const { reacts, taskId } of manifest.tasks) {
      if (!reacts?.some((name) => namesMatch(name, signal))) continue;
      const before = this.#asked.find((each) => each.taskId === taskId);
      if (before && (before.againAt === null || before.againAt > clock.now())) continue;
      const asked = before ?? { taskId, attempts: 0, isOpen: false, againAt: null, answer: null };
      if (!before) this.#asked.push(asked);
      this.#question(asked, signal);
    }
  }

  #question(asked: Asked, signal: SignalFacts): void {
    const { ask, post } = this.#parts;
    asked.isOpen = true;
    asked.againAt = null;
    asked.attempts++;
    void ask(asked.taskId, signal).then((outcome) =>
      post(() => {
        asked.isOpen = false;
        if (outcome.ok) asked.answer = outcome.action;
        else this.#failed(asked, signal, outcome.error.message);
      }),
    );
  }

  #failed(asked: Asked, { key, version }: SignalFacts, error: string): void {
    const { clock, journal } = this.#parts;
    const { attempts, taskId } = asked;
    journal.host(taskId, -1).log("error", `onSignal failed on "${key}": ${error}`, { attempts });
    if (attempts < MAX_ATTEMPTS) {
      asked.againAt = clock.now() + FIRST_DELAY_MS * 2 ** (attempts - 1);
      return;
    }
    asked.answer = "NONE";
    journal.deadLetters.push({ taskId, key, version, error });
  }

  #put(signal: SignalFacts): void {
    const { clock, journal, model } = this.#parts;
    if (signal.namespace === ACTION_NAMESPACE) this.#obey(signal);
    model.apply({ type: "heard", heard: { kind: "signal", ...signal } }, clock.now());
    for (const { answer, taskId } of this.#asked) {
      if (answer === null || answer === "NONE" || model.drive?.closed !== null) continue;
      const order = { taskId, action: ORDERS[answer] };
      journal.act({ ...order, by: signal.key });
      const by = [signal.version];
      model.apply({ type: "ordered", ...order, reason: signal.key, by }, clock.now());
    }
  }

  /** An order by hand. */
  #obey({ key, value }: SignalFacts): void {
    const { clock, journal, model, run } = this.#parts;
    const own = `${run.dagId}/${run.runId}`;
    const { action, by } = value as unknown as { readonly action: Action["action"]; readonly by: string };
    if (key === own) {
      model.apply({ type: "closed", reason: by }, clock.now());
    } else if (key.startsWith(`${own}/`)) {
      const order = { taskId: key.slice(own.length + 1), action };
      // A run that is closed starts nothing any more.
      if (model.apply({ type: "ordered", ...order, reason: by }, clock.now())) journal.act({ ...order, by });
    }
  }
}
