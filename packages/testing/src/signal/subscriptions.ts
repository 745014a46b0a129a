/**
 * Delivers signals to the run one by one, in the order of the log, like the scheduler (run/drive/run-subscriptions.ts
 * of the engine). A task with an `onSignal` is called for each of its signals; until it returns, only its own later
 * signals wait. After five failed calls the signal is a dead letter.
 */
import { namesMatch, type RunModel, type SignalFacts } from "@tradewind/engine/model";
import type { DagManifest, TaskManifest } from "@tradewind/sdk/manifest";
import type { ReactOutcome, RunFacts } from "@tradewind/sdk/program";
import type { Action } from "../result.ts";
import type { Clock } from "../run/clock.ts";
import type { Journal } from "../run/journal.ts";
import { ACTION_NAMESPACE } from "./outside.ts";

/** The signals of one `onSignal`. */
interface Queue {
  readonly taskId: string;
  readonly names: NonNullable<TaskManifest["reacts"]>;
  readonly signals: SignalFacts[];
  /** The call for the first of them. */
  pending: PendingReaction | null;
}

interface PendingReaction {
  attempts: number;
  isOpen: boolean;
  /** Set after a failure: the time of the next call. */
  againAt: number | null;
  answer: Extract<ReactOutcome, { ok: true }>["action"] | null;
}

export interface SubscriptionParts {
  readonly clock: Clock;
  readonly journal: Journal;
  readonly manifest: DagManifest;
  readonly model: RunModel;
  readonly run: RunFacts;
  /** Calls the `onSignal` of a task. */
  readonly callOnSignal: (taskId: string, signal: SignalFacts) => Promise<ReactOutcome>;
  /** Posts an event, which the run processes next. */
  readonly post: (news: () => void) => void;
}

const MAX_ATTEMPTS = 5;
const FIRST_DELAY_MS = 1_000;
const ORDERS = { START: "start", RESTART: "restart", STOP: "stop" } as const;

export class Subscriptions {
  readonly #parts: SubscriptionParts;
  readonly #inbox: SignalFacts[] = [];
  readonly #queues: readonly Queue[];

  constructor(parts: SubscriptionParts) {
    this.#parts = parts;
    this.#queues = parts.manifest.tasks.flatMap(({ reacts: names, taskId }) =>
      names ? [{ taskId, names, signals: [], pending: null }] : [],
    );
  }

  /** A call of an `onSignal` is pending. */
  get isPending(): boolean {
    return this.#queues.some(({ pending: asked }) => asked?.isOpen);
  }

  /** The next retry of a failed `onSignal`; Infinity: there is none. */
  nextAt(): number {
    return Math.min(...this.#queues.map(({ pending: asked }) => asked?.againAt ?? Number.POSITIVE_INFINITY));
  }

  receive(signal: SignalFacts): void {
    this.#inbox.push(signal);
  }

  /** Evaluates rules for new signals, applies the actions of `onSignal`, and starts pending calls. */
  apply(): void {
    for (const signal of this.#inbox.splice(0)) {
      for (const { names, signals } of this.#queues)
        if (names.some((name) => namesMatch(name, signal))) signals.push(signal);
      this.#applySignal(signal);
    }
    for (const queue of this.#queues) this.#advance(queue);
  }

  #advance(queue: Queue): void {
    const { clock, model } = this.#parts;
    if (model.drive === null || model.drive.closed !== null) {
      queue.signals.length = 0;
      queue.pending = null;
    }
    for (let signal = queue.signals[0]; signal; signal = queue.signals[0]) {
      const asked = queue.pending ?? { attempts: 0, isOpen: false, againAt: clock.now(), answer: null };
      queue.pending = asked;
      if (asked.answer === null) {
        if (asked.againAt !== null && asked.againAt <= clock.now()) this.#question(queue, asked, signal);
        return;
      }
      this.#carryOut(queue.taskId, asked.answer, signal);
      queue.signals.shift();
      queue.pending = null;
    }
  }

  #question({ taskId }: Queue, asked: PendingReaction, signal: SignalFacts): void {
    const { callOnSignal: ask, post } = this.#parts;
    asked.isOpen = true;
    asked.againAt = null;
    asked.attempts++;
    void ask(taskId, signal).then((outcome) =>
      post(() => {
        asked.isOpen = false;
        if (outcome.ok) asked.answer = outcome.action;
        else this.#failed(taskId, asked, signal, outcome.error.message);
      }),
    );
  }

  #failed(taskId: string, asked: PendingReaction, { key, version }: SignalFacts, error: string): void {
    const { clock, journal } = this.#parts;
    const { attempts } = asked;
    journal.host(taskId, -1).log("error", `onSignal failed on "${key}": ${error}`, { attempts });
    if (attempts < MAX_ATTEMPTS) {
      asked.againAt = clock.now() + FIRST_DELAY_MS * 2 ** (attempts - 1);
      return;
    }
    asked.answer = "NONE";
    journal.deadLetters.push({ taskId, key, version, error });
  }

  #applySignal(signal: SignalFacts): void {
    const { clock, model } = this.#parts;
    if (signal.namespace === ACTION_NAMESPACE) this.#applyManualCommand(signal);
    model.apply({ type: "heard", heard: { kind: "signal", ...signal } }, clock.now());
  }

  #carryOut(
    taskId: string,
    answer: NonNullable<PendingReaction["answer"]>,
    { key, version }: SignalFacts,
  ): void {
    const { clock, journal, model } = this.#parts;
    if (answer === "NONE") return;
    const order = { taskId, action: ORDERS[answer] };
    journal.act({ ...order, by: key });
    model.apply({ type: "ordered", ...order, reason: key, by: [version] }, clock.now());
  }

  /** Applies a manual command. */
  #applyManualCommand({ key, value }: SignalFacts): void {
    const { clock, journal, model, run } = this.#parts;
    const own = `${run.dagId}/${run.runId}`;
    const { action, by } = value as unknown as { readonly action: Action["action"]; readonly by: string };
    if (key === own) {
      model.apply({ type: "closed", reason: by }, clock.now());
    } else if (key.startsWith(`${own}/`)) {
      const order = { taskId: key.slice(own.length + 1), action };
      // A closed run starts nothing.
      if (model.apply({ type: "ordered", ...order, reason: by }, clock.now())) journal.act({ ...order, by });
    }
  }
}
