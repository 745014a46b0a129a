/**
 * The waits of a run; the engine stores them in the tables `deferral` and `trigger`. A wait begins with a query for the
 * outcome of its trigger; the answer is an event for the run, and fires at a moment of the run's clock.
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
import type { Firing, ScriptedTriggers } from "./scripted-triggers.ts";

const NEVER = Number.POSITIVE_INFINITY;

/** One wait of one attempt. */
export interface KeptWait {
  readonly instance: Instance;
  readonly attempt: string;
  readonly deferral: Deferral;
  readonly since: number;
  /** Aborted when the wait has ended. */
  readonly over: AbortController;
  /** Set when its trigger has fired. */
  outcome: TriggerOutcome | null;
  /** When its trigger fires; null: unknown. */
  answer: Answer | null;
  /** Whether it is known when its trigger fires. */
  isDue: boolean;
  isOver: boolean;
}

export interface WaitsParts {
  readonly clock: Clock;
  readonly desk: ScriptedTriggers;
  readonly journal: Journal;
  readonly memory: StepMemory;
  /** When the run times out. */
  readonly deadline: number;
  /** Posts an event, which the run processes next. */
  readonly post: (news: () => void) => void;
  /** The test cannot run as written. */
  readonly refuse: (error: DagTestError) => void;
}

export class Waits {
  readonly #parts: WaitsParts;
  readonly #byAttempt = new Map<string, KeptWait>();
  #due: (Firing & { readonly wait: KeptWait })[] = [];
  readonly #cancelled: KeptWait[] = [];
  #pendingCalls = 0;

  constructor(parts: WaitsParts) {
    this.#parts = parts;
  }

  /** The outcome of a trigger is not known yet. */
  get isPending(): boolean {
    return this.#pendingCalls > 0;
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
    this.#pendingCalls++;
    const late = this.#limit(wait);
    const step = deferral.name ?? deferral.method;
    const changed = () => post(() => this.#scheduleFire(wait));
    const asker = { instance, step, since, host: this.#host(instance, over.signal), changed };
    void desk
      .call(deferral.trigger, asker)
      .finally(() => clearTimeout(late))
      .then(
        (answer) =>
          post(() => {
            this.#pendingCalls--;
            wait.answer = answer;
            this.#scheduleFire(wait);
          }),
        (error: DagTestError) => post(() => refuse(error)),
      );
    journal.waits(instance, deferral, since);
  }

  /** A signal was sent. */
  receiveSignal(): void {
    this.#parts.desk.signalled();
    for (const wait of this.#byAttempt.values()) this.#scheduleFire(wait);
  }

  /** The trigger fires at the time of the current answer, or of an earlier answer if that is earlier. */
  #scheduleFire(wait: KeptWait): void {
    const firing = wait.isOver ? null : (wait.answer?.() ?? null);
    if (firing === null) return;
    const known = this.#due.find((due) => due.wait === wait);
    if (wait.isDue && (known === undefined || known.at <= firing.at)) return;
    if (known !== undefined) this.#due = this.#due.filter((due) => due !== known);
    wait.isDue = true;
    this.#due.push({ ...firing, wait });
  }

  /** The result of a sensor that polls. */
  check(instance: Instance, trigger: TriggerCall, abort: AbortSignal): Promise<Json | undefined> {
    const { clock, desk } = this.#parts;
    const since = instance.startedAt ?? clock.now();
    const host = this.#host(instance, abort);
    return desk.check(trigger, { instance, step: null, since, host, changed: () => {} });
  }

  of(attempt: string | null): KeptWait | undefined {
    return attempt === null ? undefined : this.#byAttempt.get(attempt);
  }

  /** When the next trigger fires; Infinity: none. */
  nextAt(): number {
    return this.#due.reduce((least, { at }) => Math.min(least, at), NEVER);
  }

  /** The waits whose triggers have fired, in the order of time. */
  drainFired(now: number): KeptWait[] {
    const fired = this.#due.filter(({ at }) => at <= now).sort((a, b) => a.at - b.at);
    if (fired.length > 0) this.#due = this.#due.filter(({ at }) => at > now);
    return fired.flatMap(({ wait, outcome }) => {
      if (wait.isOver) return [];
      wait.outcome = outcome;
      return [wait];
    });
  }

  /** Ends the waits of tasks that were stopped, restarted or ended with their run. */
  dropAbandoned(): void {
    for (const wait of this.#byAttempt.values()) {
      const { attempt, instance, isOver } = wait;
      if (isOver || (instance.state === "deferred" && instance.attempt === attempt)) continue;
      this.end(wait, "finished");
      this.#cancelled.push(wait);
    }
    this.#due = this.#due.filter(({ wait }) => !wait.isOver);
  }

  /** The waits that were dropped since the last call. */
  drainCancelled(): KeptWait[] {
    return this.#cancelled.splice(0);
  }

  /** Ends a wait and records the result that a function task finds on resume. */
  end(wait: KeptWait, how: "resumed" | "finished" | "timeout"): void {
    const { instance, deferral, outcome } = wait;
    wait.isOver = true;
    wait.over.abort(abortReason("cancelled", "no task waits for the trigger any more"));
    const entry: JournalEntry | null =
      how === "timeout" ? { kind: "timeout", afterMs: deferral.timeoutMs ?? 0 } : entryOf(outcome);
    if (deferral.name !== null && how !== "finished" && entry !== null)
      this.#parts.memory.keep(instance, deferral.name, entry);
  }

  /** The resume point of an operator; a function begins at the top. */
  resumePointOf({ resumedAttempt }: Instance): TaskCall["resumePoint"] {
    const wait = this.of(resumedAttempt);
    if (!wait || wait.deferral.method === null) return null;
    const { method, kwargs } = wait.deferral;
    const event = wait.outcome?.kind === "event" ? wait.outcome.payload : null;
    return structuredClone({ method, kwargs, event });
  }

  /** Ends all waits; resolves when the running triggers have cleaned up. */
  async close(): Promise<void> {
    for (const { over } of this.#byAttempt.values())
      over.abort(abortReason("cancelled", "the run has ended"));
    await this.#parts.desk.close();
  }

  /** On a virtual clock time stands still while a trigger runs: its limits are in real time. */
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
