/**
 * The waits of a run: what the tables `deferral` and `trigger` hold otherwise. A wait begins with the question what its
 * trigger does; the answer is news for the run, and fires at a moment of the run's clock.
 */
import type { Instance, TriggerOutcome } from "@tradewind/engine/model";
import type { Json } from "@tradewind/sdk";
import type { TriggerCall } from "@tradewind/sdk/manifest";
import type { Deferral, JournalEntry, TaskCall, TriggerHost } from "@tradewind/sdk/program";
import type { DagTestError } from "../errors.ts";
import type { Clock } from "../run/clock.ts";
import type { Journal } from "../run/journal.ts";
import type { StepMemory } from "../run/step-memory.ts";
import type { Answer } from "./joint-answer.ts";
import { abortReason } from "./live-trigger.ts";
import type { Firing, TriggerDesk } from "./trigger-desk.ts";

const NEVER = Number.POSITIVE_INFINITY;

/** One wait of one attempt. */
export interface KeptWait {
  readonly instance: Instance;
  readonly attempt: string;
  readonly deferral: Deferral;
  readonly since: number;
  /** Aborted when it is over, however. */
  readonly over: AbortController;
  /** Set when its trigger has fired. */
  outcome: TriggerOutcome | null;
  /** When its trigger fires; null: it is not known yet. */
  answer: Answer | null;
  /** It is known when its trigger fires. */
  isDue: boolean;
  isOver: boolean;
}

export interface WaitsParts {
  readonly clock: Clock;
  readonly desk: TriggerDesk;
  readonly journal: Journal;
  readonly memory: StepMemory;
  /** When the run is out of time. */
  readonly deadline: number;
  /** Tells the run, when it listens next. */
  readonly post: (news: () => void) => void;
  /** The test cannot be carried out. */
  readonly refuse: (error: DagTestError) => void;
}

export class Waits {
  readonly #parts: WaitsParts;
  readonly #byAttempt = new Map<string, KeptWait>();
  #due: (Firing & { readonly wait: KeptWait })[] = [];
  readonly #cancelled: KeptWait[] = [];
  #asking = 0;

  constructor(parts: WaitsParts) {
    this.#parts = parts;
  }

  /** It is not known yet what some trigger does. */
  get isAsking(): boolean {
    return this.#asking > 0;
  }

  begin(instance: Instance, attempt: string, deferral: Deferral): void {
    const { clock, desk, post, refuse, journal } = this.#parts;
    const since = clock.now();
    const over = new AbortController();
    const wait: KeptWait = {
      instance,
      attempt,
      deferral,
      since,
      over,
      outcome: null,
      answer: null,
      isDue: false,
      isOver: false,
    };
    this.#byAttempt.set(attempt, wait);
    this.#asking++;
    const late = this.#limit(wait);
    const step = deferral.name ?? deferral.method;
    const changed = () => post(() => this.#noteDue(wait));
    const asker = { instance, step, since, host: this.#host(instance, over.signal), changed };
    void desk
      .ask(deferral.trigger, asker)
      .finally(() => clearTimeout(late))
      .then(
        (answer) =>
          post(() => {
            this.#asking--;
            wait.answer = answer;
            this.#noteDue(wait);
          }),
        (error: DagTestError) => post(() => refuse(error)),
      );
    journal.waits(instance, deferral, since);
  }

  /** A signal was sent. */
  hear(): void {
    this.#parts.desk.signalled();
    for (const wait of this.#byAttempt.values()) this.#noteDue(wait);
  }

  /** Its trigger fires when the answer says so now, or when it said so before if that is earlier. */
  #noteDue(wait: KeptWait): void {
    const firing = wait.isOver ? null : (wait.answer?.() ?? null);
    if (firing === null) return;
    const known = this.#due.find((due) => due.wait === wait);
    if (wait.isDue && (known === undefined || known.at <= firing.at)) return;
    if (known !== undefined) this.#due = this.#due.filter((due) => due !== known);
    wait.isDue = true;
    this.#due.push({ ...firing, wait });
  }

  /** What a sensor finds that looks by itself. */
  check(instance: Instance, trigger: TriggerCall, abort: AbortSignal): Promise<Json | undefined> {
    const { clock, desk } = this.#parts;
    const since = instance.startedAt ?? clock.now();
    const host = this.#host(instance, abort);
    return desk.check(trigger, { instance, step: null, since, host, changed: () => {} });
  }

  of(attempt: string | null): KeptWait | undefined {
    return attempt === null ? undefined : this.#byAttempt.get(attempt);
  }

  /** When the next trigger fires; Infinity: none will. */
  nextAt(): number {
    return this.#due.reduce((least, { at }) => Math.min(least, at), NEVER);
  }

  /** Those whose trigger has fired by now, in order of time. */
  takeFired(now: number): KeptWait[] {
    const fired = this.#due.filter(({ at }) => at <= now).sort((a, b) => a.at - b.at);
    if (fired.length > 0) this.#due = this.#due.filter(({ at }) => at > now);
    return fired.flatMap(({ wait, outcome }) => {
      if (wait.isOver) return [];
      wait.outcome = outcome;
      return [wait];
    });
  }

  /** Ends the waits of tasks that were stopped, begin again or were ended with their run. */
  dropAbandoned(): void {
    for (const wait of this.#byAttempt.values()) {
      const { attempt, instance, isOver } = wait;
      if (isOver || (instance.state === "deferred" && instance.attempt === attempt)) continue;
      this.end(wait, "finished");
      this.#cancelled.push(wait);
    }
    this.#due = this.#due.filter(({ wait }) => !wait.isOver);
  }

  /** Those that have been dropped since the last call. */
  takeCancelled(): KeptWait[] {
    return this.#cancelled.splice(0);
  }

  /** What a function task will find when it asks again is remembered here. */
  end(wait: KeptWait, how: "resumed" | "finished" | "timeout"): void {
    const { instance, deferral, outcome } = wait;
    wait.isOver = true;
    wait.over.abort(abortReason("cancelled", "no task waits for the trigger any more"));
    const entry: JournalEntry | null =
      how === "timeout" ? { kind: "timeout", afterMs: deferral.timeoutMs ?? 0 } : entryOf(outcome);
    if (deferral.name !== null && how !== "finished" && entry !== null)
      this.#parts.memory.keep(instance, deferral.name, entry);
  }

  /** Where an operator goes on; a function begins at the top. */
  resumePointOf({ resumedAttempt }: Instance): TaskCall["resumePoint"] {
    const wait = this.of(resumedAttempt);
    if (!wait || wait.deferral.method === null) return null;
    const { method, kwargs } = wait.deferral;
    const event = wait.outcome?.kind === "event" ? wait.outcome.payload : null;
    return structuredClone({ method, kwargs, event });
  }

  /** Nobody waits any more; resolves when the triggers that were run have cleaned up. */
  async close(): Promise<void> {
    for (const { over } of this.#byAttempt.values()) over.abort(abortReason("cancelled", "the run is over"));
    await this.#parts.desk.close();
  }

  /** On a virtual clock time stands still while a trigger is run: its limits are then those of real time. */
  #limit({ instance, over, since }: KeptWait): NodeJS.Timeout | undefined {
    const { clock, deadline } = this.#parts;
    const { startedAt, node, wait } = instance;
    const tryEnds = (startedAt ?? since) + (node.manifest.timeoutMs ?? NEVER);
    const leftMs = Math.min(wait?.timeoutAt ?? NEVER, tryEnds, deadline) - since;
    if (!clock.isVirtual || leftMs >= 2 ** 31) return undefined;
    return setTimeout(
      () => over.abort(abortReason("cancelled", "the wait timed out", "TimeoutError")),
      leftMs,
    );
  }

  #host({ node, mapIndex }: Instance, abort: AbortSignal): TriggerHost {
    const { log, variable, connection } = this.#parts.journal.host(node.id, mapIndex);
    return { abort, log, variable, connection, polled: () => {}, limited: (_key, _limit, work) => work() };
  }
}

function entryOf(outcome: TriggerOutcome | null): JournalEntry | null {
  if (outcome?.kind === "event") return { kind: "event", value: outcome.payload };
  return outcome?.kind === "failed" ? outcome : null;
}
