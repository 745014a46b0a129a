/** The entries of a test for the triggers of its DAG: an event, an error, or a class that runs. */

import type { TriggerOutcome } from "@tradewind/engine/model";
import type { Duration, Ending, Json } from "@tradewind/sdk";
import type { BuiltinTriggers } from "@tradewind/sdk/builtin-triggers";
import { errorFacts } from "@tradewind/sdk/error-facts";
import { TRIGGER, type TriggerEnding, type TriggerProgram } from "@tradewind/sdk/program";
import { DagTestError } from "../errors.ts";
import { delayMs } from "../moment.ts";

/** A registered symbol, as in the engine: an ending may come from another copy of the SDK. */
const ENDING = Symbol.for("tradewind.ending");
const DELAYED: unique symbol = Symbol("delayed");

/**
 * The type of {@link after}.
 * @example const delayed: Delayed<string> = after("3d", "2027-01-07T00:00:00.000Z");
 */
export interface Delayed<Event = unknown> {
  readonly [DELAYED]: { readonly delayMs: number; readonly event: Event | Ending | Error };
}

/**
 * Lets a trigger fire a duration after the wait began, on the clock of the run.
 * @example await runDag(approvals, { triggers: { "tradewind.webhook": after("3d", { body: "yes", headers: {} }) } });
 */
export function after<Event>(delay: Duration, event: Event | Ending | Error): Delayed<Event> {
  return { [DELAYED]: { delayMs: delayMs(delay), event } };
}

/**
 * The wait, as a function in {@link Triggers} receives it.
 * @example const triggers: Triggers = { "acme.job_done": (_args: unknown, wait: WaitFacts) => ({ rows: wait.tryNumber }) };
 */
export interface WaitFacts {
  readonly taskId: string;
  readonly tryNumber: number;
  /** The name of the `ctx.until`, or the method to resume with; null for `d.trigger`. */
  readonly step: string | null;
  /** The time on the run's clock. */
  readonly now: Date;
}

type Answer<Event> = Event | Ending | Delayed<Event> | Error;

/** A custom trigger class, which runs in the process of the test. */
interface TriggerClass {
  readonly [TRIGGER]: TriggerProgram | undefined;
}

/**
 * An entry of {@link Triggers}: an event, `endWith`, an `Error`, `after()`, undefined (never fires), a class, or a
 * function.
 * @example const script: TriggerScript<string, unknown> = () => after("1h", "approved");
 */
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
 * The events of triggers, by trigger id, task id or `task/step`; the most specific key wins.
 * @see docs/guides/testing.md
 * @example const triggers: Triggers = { "tradewind.webhook": { body: "yes", headers: {} }, "load/file": new Error("no disk") };
 */
export interface Triggers extends BuiltinScripts {
  readonly [key: string]: AnyScript;
}

/**
 * An entry after its functions were called. `delayMs` counts from the beginning of the wait; null: it does not fire.
 */
export type Scripted = { readonly delayMs: number; readonly outcome: TriggerOutcome } | null;

/** The program of an entry that is a trigger class. */
export function programIn(entry: unknown): TriggerProgram | null {
  return typeof entry === "function" ? ((entry as unknown as TriggerClass)[TRIGGER] ?? null) : null;
}

export function scripted(key: string, value: unknown): Scripted {
  if (value === undefined) return null;
  const { delayMs, value: event } = split(value);
  return { delayMs, outcome: outcomeOf(key, event) };
}

/** The value inside of {@link after}, and its delay. */
export function split(value: unknown): { readonly delayMs: number; readonly value: unknown } {
  if (typeof value !== "object" || value === null || !(DELAYED in value)) return { delayMs: 0, value };
  const { delayMs, event } = (value as Delayed)[DELAYED];
  return { delayMs, value: event };
}

export function failedWith(thrown: unknown): TriggerOutcome {
  return { kind: "failed", error: errorFacts(thrown) };
}

function outcomeOf(key: string, value: unknown): TriggerOutcome {
  if (value instanceof Error) return failedWith(value);
  if (typeof value === "object" && value !== null && ENDING in value) {
    return { kind: "ending", ending: (value as { [ENDING]: TriggerEnding })[ENDING] };
  }
  return { kind: "event", payload: jsonOf(`triggers: the event of "${key}"`, value), key: null };
}

/** A copy of a value of the test. @throws DagTestError if it is not JSON. */
export function jsonOf(what: string, value: unknown): Json {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    // Refused below.
  }
  if (text === undefined) throw new DagTestError("TW_TEST_BAD_OPTION", `${what} must be JSON`);
  return JSON.parse(text) as Json;
}
