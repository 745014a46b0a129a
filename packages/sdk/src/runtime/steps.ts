/**
 * `ctx.step` and `ctx.until`: the recorded steps of a function task, by name. After a wait the function runs again from
 * the top in a new process, and completed steps return their result from the journal.
 *
 * A wait is a promise that never settles, so that no `catch` or `finally` of the author runs; the attempt ends beside
 * it. The attempt ends only after every running `step` has ended, because a result that is not recorded would be
 * computed again.
 */

import { show, TaskError, type TaskErrorCode } from "../check/errors.ts";
import { isName, NAME_FORM } from "../check/name.ts";
import { jsonCopy } from "../check/output-check.ts";
import type { Json } from "../manifest.ts";
import { durationMs } from "../schedule/duration.ts";
import { controlOf } from "../signal/control.ts";
import { limitMs } from "../trigger/deferral.ts";
import { AllTrigger, type Members } from "../trigger/joint-trigger.ts";
import { DeferralTimeoutError, TriggerFailedError } from "../trigger/wait-errors.ts";
import { callFor, isWaitable, type Listener, RECEIVE, type Waitable } from "../trigger/waitable.ts";
import type { StepContext, UntilOptions } from "./context.ts";
import type { Deferral, JournalEntry, TaskCall } from "./program.ts";

/** The steps of one attempt. */
export class Steps {
  readonly #call: TaskCall;
  readonly #listener: Listener;
  readonly #names = new Set<string>();
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #undecided = new Set<Promise<unknown>>();
  readonly #deferral = Promise.withResolvers<Deferral>();
  #journal: Promise<Readonly<Record<string, JournalEntry>>> | undefined;
  /** The wait that the attempt ends with. */
  #pending: string | null = null;
  #isClosed = false;
  /** Set if steps are used incorrectly: another try cannot help, and the author's `catch` cannot hide it. */
  refusal: TaskError | undefined;

  constructor(call: TaskCall) {
    this.#call = call;
    this.#listener = { run: call.run, conf: call.conf, taken: new Map() };
  }

  /** The part of the context that authors see. */
  context(): StepContext {
    return {
      step: (name: string, work: () => unknown) => this.#step(name, work) as Promise<never>,
      until: (name: string, what: Waitable<unknown> | Members, options?: UntilOptions) =>
        this.#until(name, what, options) as Promise<never>,
    };
  }

  /** Resolves when the attempt has to end with a wait, and never without one. Rejects if the waits are invalid. */
  get deferral(): Promise<Deferral> {
    return this.#deferral.promise;
  }

  /**
   * Returns whether the attempt ends with a wait. Called after its function returned, possibly without awaiting its
   * `until`.
   */
  async isWaiting(): Promise<boolean> {
    await Promise.allSettled(this.#undecided);
    return this.#pending !== null;
  }

  /** Closes the attempt: code that still runs cannot start further steps. */
  close(): void {
    this.#isClosed = true;
  }

  async #step(name: string, work: () => unknown): Promise<unknown> {
    const entry = await this.#recall(name, "ctx.step");
    if (entry?.kind === "step") return entry.value;
    if (entry !== undefined) throw this.#refuse("TW_STEP_KIND", mismatch(name, "ctx.until", "ctx.step"));
    const result = this.#perform(name, work);
    this.#underWay.add(result);
    const over = () => void this.#underWay.delete(result);
    result.then(over, over);
    return await result;
  }

  async #perform(name: string, work: () => unknown): Promise<Json> {
    const { host } = this.#call;
    const value = await host.inStep(name, async () => work());
    // Ends the task, as it would outside of the step.
    if (controlOf(value) !== null) throw value;
    const result = jsonCopy(value, {
      root: `result of ctx.step(${show(name)})`,
      notJson: (message) => this.#refuse("TW_STEP_NOT_JSON", message),
      tooLarge: (message) =>
        this.#refuse("TW_STEP_TOO_LARGE", `${message}; store the data elsewhere and return its address`),
    });
    await host.remember(name, result);
    return result;
  }

  async #until(
    name: string,
    what: Waitable<unknown> | Members,
    options: UntilOptions = {},
  ): Promise<unknown> {
    const decided = this.#decide(name, what, options);
    this.#undecided.add(decided);
    const over = () => void this.#undecided.delete(decided);
    decided.then(over, over);
    const event = await decided;
    return event === WAITING ? await NEVER : event;
  }

  /** Returns the event, or that the attempt has to end and wait for it. */
  async #decide(name: string, what: Waitable<unknown> | Members, options: UntilOptions): Promise<unknown> {
    await this.#recall(name, "ctx.until");
    const journal = await this.#journal!;
    const trigger = isWaitable(what) ? what : new AllTrigger(what);
    let step = name;
    for (let passedOver = 0; ; ) {
      const entry = Object.hasOwn(journal, step) ? journal[step] : undefined;
      if (entry?.kind !== "event") return this.#outcome(name, { step, entry, trigger, options });
      if (!trigger[RECEIVE]) return entry.value;
      try {
        return await trigger[RECEIVE](entry.value, this.#listener);
      } catch (error) {
        // In a joint wait the other events are valid and would have to arrive again.
        if (trigger instanceof AllTrigger || !isInvalidSignal(error)) throw error;
        // The wait continues under a name of its own, in this try and whenever it is replayed.
        step = `${name} (${++passedOver + 1})`;
        if (!isName(step) || this.#names.has(step)) throw error;
        this.#names.add(step);
        if (!Object.hasOwn(journal, step))
          this.#call.host.log("warn", `ctx.until(${show(name)}) skips ${error.message}`);
      }
    }
  }

  /** The result of a wait without an event, or the start of the wait. */
  #outcome(name: string, { entry, options, step, trigger }: Wait): typeof WAITING {
    const where = `ctx.until(${show(name)}): timeout`;
    if (entry?.kind === "timeout") {
      // The timeout as written here: the stored one counts from when the wait was stored, a little later.
      const { timeout } = options;
      const limit = timeout === undefined ? Math.max(0, entry.afterMs) : durationMs(timeout, where);
      throw new DeferralTimeoutError(name, limit);
    }
    if (entry?.kind === "failed") throw new TriggerFailedError(name, entry.error);
    if (entry !== undefined) throw this.#refuse("TW_STEP_KIND", mismatch(name, "ctx.step", "ctx.until"));
    if (this.#pending !== null) {
      // Not thrown: the promise may not be awaited, and no `catch` runs for a wait.
      this.#deferral.reject(this.#refuse("TW_STEP_CONCURRENT", concurrent(this.#pending, name)));
      return WAITING;
    }
    const deferral: Deferral = {
      trigger: callFor(this.#listener, trigger),
      method: null,
      name: step,
      kwargs: {},
      timeoutMs: limitMs(options.timeout, where),
      onTimeout: "resume",
      onFailure: "resume",
    };
    this.#pending = name;
    this.#whenIdle()
      .then(() => this.#checkReplay(name))
      .then(() => this.#deferral.resolve(deferral), this.#deferral.reject);
    return WAITING;
  }

  /**
   * A replay on the same path finds every recorded wait by name before it begins another one. Called when nothing runs
   * beside the wait: until then another branch may still reach its steps.
   *
   * @throws TaskError if names change from resume to resume: such a task would wait forever.
   */
  async #checkReplay(begun: string): Promise<void> {
    const waits = Object.entries((await this.#journal) ?? {}).filter(([, { kind }]) => kind !== "step");
    const unused = waits.flatMap(([name]) => (this.#names.has(name) ? [] : [name]));
    if (unused.length >= MAX_UNUSED) throw this.#refuse("TW_STEP_UNSTABLE", unstable(unused, begun));
  }

  /** Resolves when no `step` is running or about to begin. */
  async #whenIdle(): Promise<void> {
    do {
      await Promise.allSettled(this.#underWay);
      await new Promise((resolve) => setImmediate(resolve));
    } while (this.#underWay.size > 0);
  }

  /** The journal entry of that name, which is then reserved for the rest of the attempt. */
  async #recall(name: string, asked: "ctx.step" | "ctx.until"): Promise<JournalEntry | undefined> {
    this.#claim(name, asked);
    this.#journal ??= this.#call.host.recall();
    const journal = await this.#journal;
    if (this.#isClosed) await NEVER;
    return Object.hasOwn(journal, name) ? journal[name] : undefined;
  }

  #claim(name: string, asked: "ctx.step" | "ctx.until"): void {
    if (!isName(name)) {
      throw this.#refuse("TW_STEP_NAME", `${asked}: a step's name is ${NAME_FORM}, got ${show(name)}`);
    }
    const around = this.#call.host.currentStep();
    if (around !== null) {
      throw this.#refuse(
        "TW_STEP_NESTED",
        `${asked}(${show(name)}) inside ctx.step(${show(around)}); put the steps one after the other`,
      );
    }
    const method = this.#call.resumePoint?.method;
    if (asked === "ctx.until" && method !== undefined) {
      throw this.#refuse(
        "TW_STEP_NESTED",
        `ctx.until(${show(name)}) in ${method}(), which runs after a deferral; return this.defer() instead`,
      );
    }
    if (this.#names.has(name)) {
      throw this.#refuse(
        "TW_STEP_NAME",
        `${asked}(${show(name)}): the name was used before in this attempt; give every step a name of its own, e.g. with an index in a loop`,
      );
    }
    this.#names.add(name);
  }

  #refuse(code: TaskErrorCode, message: string): TaskError {
    this.refusal ??= new TaskError(code, message);
    return this.refusal;
  }
}

interface Wait {
  /** The name in the journal. */
  readonly step: string;
  readonly entry: JournalEntry | undefined;
  readonly trigger: Waitable<unknown>;
  readonly options: UntilOptions;
}

function isInvalidSignal(error: unknown): error is TaskError {
  return error instanceof TaskError && error.code === ("TW_SIGNAL_INVALID" satisfies TaskErrorCode);
}

/** Waits that a replay may leave unused: code may branch on external state now and then. */
const MAX_UNUSED = 3;
const MAX_SHOWN = 5;
const WAITING: unique symbol = Symbol("waiting");
const NEVER = new Promise<never>(() => {});

function mismatch(name: string, then: string, now: string): string {
  return `step ${show(name)} was ${then} when this try did it, and is ${now} now; use a new name, or clear the task`;
}

function concurrent(first: string, second: string): string {
  return (
    `ctx.until(${show(second)}) began while ctx.until(${show(first)}) was pending; a function has one wait at a time. ` +
    `Wait for all: ctx.until("all", { a, b }). Wait for the first: ctx.until("first", any(a, b))`
  );
}

function unstable(unused: readonly string[], begun: string): string {
  const names = unused.slice(-MAX_SHOWN).map((name) => show(name));
  return (
    `ctx.until(${show(begun)}) began, but the events of ${unused.length} earlier waits were not used: ${names.join(", ")}. ` +
    `A wait needs the same name on every resume. Build names from constants, loop indexes, inputs or results of ctx.step, not from the time or a random value`
  );
}
