/**
 * Deferral of an operator: the value of `this.defer`, and its compile-time checks. A class cannot be checked against
 * itself while its body is being compiled (`this` may be a subclass), so the value carries the types, and `d.operator`
 * compares them.
 */

import { TaskError } from "../check/errors.ts";
import type { IsJson } from "../check/json.ts";
import { jsonCopy } from "../check/output-check.ts";
import type { Json, StartTrigger } from "../manifest.ts";
import type { TaskContext } from "../runtime/context.ts";
import type { Deferral } from "../runtime/program.ts";
import { type Duration, durationMs } from "../schedule/duration.ts";
import { CONTROL, type Control } from "../signal/control.ts";
import { callAtDefinition, type EventOf, serialise, type Waitable } from "./waitable.ts";

declare const TYPES: unique symbol;
declare const WHY: unique symbol;

/**
 * The type of {@link Operator.defer}, which `execute` or a resumed method returns.
 *
 * @example
 * ```ts
 * class Import extends Operator<void, string> {
 *   execute(): Deferred<"done", FileEvent> {
 *     return this.defer({ trigger: new FileTrigger({ path: "/data/in.csv" }), method: "done" }) as Deferred<"done", FileEvent>;
 *   }
 *   done(_ctx: TaskContext, file: FileEvent) {
 *     return file.path;
 *   }
 * }
 * ```
 */
export interface Deferred<Method extends string = string, Event = unknown, Kwargs = unknown> {
  readonly [CONTROL]: "defer";
  readonly [TYPES]?: { readonly method: Method; readonly event: Event; readonly kwargs: Kwargs };
}

/**
 * Options of {@link Operator.defer}.
 *
 * @example
 * ```ts
 * const options: DeferOptions<{ rows: number }, "collect", { job: string }> = {
 *   trigger: new JobDone({ job: "j1" }),
 *   method: "collect",
 *   kwargs: { job: "j1" },
 *   timeout: "6h",
 * };
 * ```
 */
export interface DeferOptions<Event, Method, Kwargs> {
  /** The trigger to wait for. */
  readonly trigger: Waitable<Event>;
  /**
   * The method to resume with, `method(ctx, event, kwargs, inputs)`, possibly in another process on another machine.
   */
  readonly method: Method;
  /** JSON arguments of that method, which has no other state of the attempt. */
  readonly kwargs?: Kwargs;
  /** The maximum duration of the wait. */
  readonly timeout?: Duration;
  /** The effect of a timeout: "fail" allows a retry, "fatal" does not, "skip" skips the task (default "fail"). */
  readonly onTimeout?: StartTrigger["onTimeout"];
}

/**
 * The wait that a task starts with before it needs a worker; without a method, its event is the output.
 * @example const start: StartFrom<FileEvent> = { trigger: new FileTrigger({ path: "/data/in.csv" }), timeout: "6h" };
 */
export interface StartFrom<Event = unknown> {
  readonly trigger: Waitable<Event>;
  readonly method?: string;
  readonly kwargs?: Readonly<Record<string, unknown>>;
  readonly timeout?: Duration;
  readonly onTimeout?: StartTrigger["onTimeout"];
}

/** The key of a {@link Deferred}'s content; a registered symbol, see control.ts. */
const HELD: unique symbol = Symbol.for("tradewind.deferral") as never;

interface Held {
  readonly options: DeferOptions<unknown, string, unknown>;
  readonly deferral: Deferral;
}

/** Checked at once, so that an error is reported where it was made. */
export function deferred(options: DeferOptions<unknown, string, unknown>): Deferred {
  const deferral: Deferral = {
    trigger: serialise(options.trigger),
    method: options.method,
    name: null,
    kwargs: kwargsJson(options.kwargs),
    timeoutMs: limitMs(options.timeout, "defer: timeout"),
    onTimeout: options.onTimeout ?? "fail",
    onFailure: "fail",
  };
  return Object.freeze({ [CONTROL]: "defer" as const, [HELD]: { options, deferral } });
}

/** The deferral in a value of {@link deferred}, from any copy of the SDK. */
export function deferralOf(value: unknown): Deferral {
  return (value as { [HELD]: Held })[HELD].deferral;
}

/** The manifest form of the result of `startFrom`. */
export function startTrigger(given: StartFrom | Deferred): StartTrigger {
  const { trigger, method, kwargs, timeout, onTimeout }: StartFrom | Held["options"] =
    HELD in given ? (given as unknown as { [HELD]: Held })[HELD].options : (given as StartFrom);
  return {
    trigger: callAtDefinition(trigger),
    method: method ?? null,
    kwargs: kwargsJson(kwargs),
    timeoutMs: limitMs(timeout, "startFrom: timeout"),
    onTimeout: onTimeout ?? "fail",
  };
}

/** The method of an operator that a deferral can resume with; null if there is none of that name. */
export function methodOf(operator: object, name: string): UserMethod | null {
  const method = (operator as Record<string, unknown>)[name];
  return typeof method === "function" && !OURS.has(name) ? (method.bind(operator) as UserMethod) : null;
}

const OURS: ReadonlySet<string> = new Set([
  "constructor",
  "defer",
  "onCancel",
  "onSignal",
  "setSignal",
  "startFrom",
]);

type UserMethod = (ctx: TaskContext, event: Json, kwargs: Json, inputs: unknown) => unknown;

function kwargsJson(kwargs: unknown): Json {
  return jsonCopy(kwargs ?? {}, {
    root: "kwargs",
    notJson: (message) => new TaskError("TW_STEP_NOT_JSON", message),
    tooLarge: (message) => new TaskError("TW_STEP_TOO_LARGE", message),
  });
}

/** The milliseconds of a timeout; null without one. */
export function limitMs(timeout: Duration | undefined, where: string): number | null {
  return timeout === undefined ? null : Math.max(1, durationMs(timeout, where));
}

/**
 * A compiler message about an invalid deferral; no value has this type.
 * @example const problem = null as unknown as WrongDeferral<"the operator has no such method", "dnoe">;
 */
export interface WrongDeferral<Message extends string, Types = unknown> {
  readonly [WHY]: [Message, Types];
}

/**
 * `unknown` if every deferral of an operator matches the method it names, otherwise a {@link WrongDeferral}.
 * @example const add = <O extends Operator<void, number>>(operator: O & DefersWell<O, number, AnyInputs>) => operator;
 */
export type DefersWell<O, Result, Inputs> = [Mistakes<O, Result, Inputs>] extends [never]
  ? unknown
  : Mistakes<O, Result, Inputs>;

type Method = (...args: never[]) => unknown;
type IsAny<T> = 0 extends 1 & T ? true : false;

/** The errors of all deferrals that the methods of the operator return. */
type Mistakes<O, Result, Inputs> = {
  [K in Exclude<keyof O, "defer">]: O[K] extends Method | undefined
    ? K extends "startFrom"
      ? StartMistake<ReturnOf<O[K]>, Result> | Mistake<DeferredIn<ReturnOf<O[K]>>, O, Result, Inputs>
      : Mistake<DeferredIn<ReturnOf<O[K]>>, O, Result, Inputs>
    : never;
}[Exclude<keyof O, "defer">];

type ReturnOf<F> =
  NonNullable<F> extends (...args: never[]) => infer R ? (IsAny<R> extends true ? never : Awaited<R>) : never;

type DeferredIn<R> = R extends { readonly [CONTROL]: "defer" } ? R : never;

/** For a task that starts from a trigger without a method: the event is the output. */
type StartMistake<S, Result> = S extends { readonly trigger: infer W; readonly method?: undefined }
  ? [EventOf<W>] extends [Result]
    ? never
    : WrongDeferral<
        "startFrom without a method: the event must have the type of the result",
        { event: EventOf<W>; result: Result }
      >
  : never;

type Mistake<D, O, Result, Inputs> =
  D extends Deferred<infer M, infer E, infer K>
    ? string extends M
      ? never
      : M extends keyof O
        ? O[M] extends Method
          ? MethodMistake<M, O[M], E, K, Inputs> | ResultMistake<M, ReturnOf<O[M]>, Result>
          : WrongDeferral<`"${M}" is not a method`>
        : WrongDeferral<`there is no method "${M}"`>
    : never;

type MethodMistake<M extends string, F, E, K, Inputs> = F extends (
  ctx: TaskContext,
  event: E,
  kwargs: K,
  inputs: Inputs,
) => unknown
  ? unknown extends IsJson<K, "kwargs">
    ? never
    : IsJson<K, "kwargs">
  : F extends (ctx: TaskContext, event: infer Taken, ...rest: never) => unknown
    ? [E] extends [Taken]
      ? WrongDeferral<`method "${M}" takes other kwargs than it is given`, { given: K; method: F }>
      : WrongDeferral<
          `method "${M}" takes another event than its trigger fires with`,
          { event: E; method: F }
        >
    : WrongDeferral<`method "${M}" must take (ctx, event, kwargs, inputs)`, { method: F }>;

type ResultMistake<M extends string, R, Result> = [Exclude<R, Control | Deferred>] extends [Result]
  ? never
  : WrongDeferral<
      `method "${M}" returns another type than the operator's result`,
      { returned: Exclude<R, Control | Deferred>; result: Result }
    >;
