/** What a test says about the triggers of its DAG: what each fires with, fails with, or that it is run for real. */

import type { TriggerOutcome } from "@tradewind/engine/model";
import type { Duration, Ending, Json } from "@tradewind/sdk";
import type { BuiltinTriggers } from "@tradewind/sdk/builtin-triggers";
import { errorFacts } from "@tradewind/sdk/error-facts";
import { TRIGGER, type TriggerEnding, type TriggerProgram } from "@tradewind/sdk/program";
import { DagTestError } from "../errors.ts";
import { delayMs } from "../moment.ts";

/** Found by symbol, as the engine does: it may be of another copy of the SDK. */
const ENDING = Symbol.for("tradewind.ending");
const DELAYED: unique symbol = Symbol("delayed");

/** What {@link after} makes. */
export interface Delayed<Event = unknown> {
  readonly [DELAYED]: { readonly delayMs: number; readonly event: Event | Ending | Error };
}

/**
 * Lets a trigger fire some time after the wait began, on the clock of the run.
 *
 * @example
 * ```ts
 * await runDag(approvals, { triggers: { "tradewind.webhook": after("3d", { body: "yes", headers: {} }) } });
 * ```
 */
export function after<Event>(delay: Duration, event: Event | Ending | Error): Delayed<Event> {
  return { [DELAYED]: { delayMs: delayMs(delay), event } };
}

/** Who waits, for entries that are functions. */
export interface WaitFacts {
  readonly taskId: string;
  readonly tryNumber: number;
  /** The name of the `ctx.until`, or the method to go on with; null when the task is nothing but its trigger. */
  readonly step: string | null;
  /** What the clock of the run shows. */
  readonly now: Date;
}

type Answer<Event> = Event | Ending | Delayed<Event> | Error;

/** A class of the author's own that is really run, in the process of the test. */
interface TriggerClass {
  readonly [TRIGGER]: TriggerProgram | undefined;
}

/** One entry of {@link Triggers}. */
export type TriggerScript<Event, Args> =
  | Answer<Event>
  | undefined
  | TriggerClass
  | ((args: Args, wait: WaitFacts) => Answer<Event> | undefined | Promise<Answer<Event> | undefined>);

type BuiltinScripts = {
  readonly [K in keyof BuiltinTriggers]?: TriggerScript<
    BuiltinTriggers[K]["event"],
    BuiltinTriggers[K]["args"]
  >;
};

type AnyScript =
  | object
  | string
  | number
  | boolean
  | null
  | undefined
  // A method: so that the entry of a trigger of the author's own may say which arguments it takes.
  | { answer(args: Json, wait: WaitFacts): unknown }["answer"];

/**
 * What happens to the triggers that tasks wait for. A key is a trigger's id, or a task's id, or `task/step` with the
 * name of a `ctx.until` or the method of a deferral; the narrowest counts.
 *
 * An entry is the event; `endWith.…`; an `Error`, with which the trigger fails; `after(…)`; undefined, when it does not
 * fire; a trigger class, which is run; or a function that answers with one of these.
 */
export interface Triggers extends BuiltinScripts {
  readonly [key: string]: AnyScript;
}

/** What an entry says, functions called. `delayMs` counts from the beginning of the wait; null: it does not fire. */
export type Said = { readonly delayMs: number; readonly outcome: TriggerOutcome } | null;

/** The program of an entry that is a trigger class. */
export function programIn(entry: unknown): TriggerProgram | null {
  return typeof entry === "function" ? ((entry as unknown as TriggerClass)[TRIGGER] ?? null) : null;
}

export function said(key: string, value: unknown): Said {
  if (value === undefined) return null;
  if (typeof value === "object" && value !== null && DELAYED in value) {
    const { delayMs, event } = (value as Delayed)[DELAYED];
    return { delayMs, outcome: outcomeOf(key, event) };
  }
  return { delayMs: 0, outcome: outcomeOf(key, value) };
}

export function failedWith(thrown: unknown): TriggerOutcome {
  return { kind: "failed", error: errorFacts(thrown) };
}

function outcomeOf(key: string, value: unknown): TriggerOutcome {
  if (value instanceof Error) return failedWith(value);
  if (typeof value === "object" && value !== null && ENDING in value) {
    return { kind: "ending", ending: (value as { [ENDING]: TriggerEnding })[ENDING] };
  }
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    // Refused below.
  }
  if (text === undefined)
    throw new DagTestError("TW_TEST_BAD_OPTION", `triggers: the event of "${key}" must be JSON`);
  return { kind: "event", payload: JSON.parse(text) as Json, key: null };
}
