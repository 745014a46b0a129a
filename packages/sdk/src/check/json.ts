/**
 * Compile-time check that an output is JSON. It runs beside inference, not inside it: an output keeps its inferred type
 * (`Output<number>`, not `Output<42>`), and the error names place and reason, e.g. `NotJson<"output.rows[].at is a
 * Date; return date.toISOString() instead">`. A promise of `unknown` is rejected, such as the result of
 * `response.json()`. `any` passes, and so does an `unknown` that is not a promise: R is `unknown` during inference,
 * too. The check at run time (output-check.ts) is final.
 */

import type { Json } from "../manifest.ts";
import type { Control } from "../signal/control.ts";

declare const WHY: unique symbol;

/**
 * A compiler message about a value that is not JSON; no value has this type.
 * @example const problem = null as unknown as NotJson<"output.at is a Date; return date.toISOString() instead">;
 */
export interface NotJson<Message extends string> {
  readonly [WHY]: Message;
}

/**
 * The output of a handler: its awaited result without {@link skip} and {@link fail}.
 * @example const output: Produced<Promise<string | Control>> = "done";
 */
export type Produced<R> = Exclude<Awaited<R>, Control>;

/**
 * `unknown` if the result of a handler is JSON, otherwise a {@link NotJson}.
 * @example const run = <R>(work: (() => R) & ReturnsJson<R>) => d.task("work", work);
 */
export type ReturnsJson<R> = unknown extends R
  ? unknown
  : [unknown, IsAny<Awaited<R>>] extends [Awaited<R>, false]
    ? NotJson<"output is unknown; give it a type that is JSON, e.g. by a schema that checks it">
    : [Produced<R>] extends [JsonOf<Produced<R>>]
      ? unknown
      : NotJson<Problem<Produced<R>, "output">>;

type IsAny<T> = 0 extends 1 & T ? true : false;

/**
 * Like {@link ReturnsJson}, for the event of a trigger.
 * @example const wait = <Event>(trigger: Waitable<Event> & EventIsJson<Event>) => d.trigger("wait", trigger);
 */
export type EventIsJson<Event> = IsJson<Event, "event">;

/**
 * `unknown` if `T` is JSON, otherwise a {@link NotJson} whose message begins with `Root`.
 * @example const store = <T>(value: T & IsJson<T, "value">) => JSON.stringify(value);
 */
export type IsJson<T, Root extends string> = unknown extends T
  ? unknown
  : [T] extends [JsonOf<T>]
    ? unknown
    : NotJson<Problem<T, Root>>;

// biome-ignore lint/suspicious/noConfusingVoidType: a handler without a return statement produces void.
type Scalar = string | number | boolean | null | undefined | void;
type Callable = (...args: never[]) => unknown;
type Binary = ArrayBuffer | ArrayBufferView;
type Collection = ReadonlyMap<unknown, unknown> | ReadonlySet<unknown>;
type Refused = Date | bigint | symbol | Callable | Collection | PromiseLike<unknown> | Binary | RegExp;

/**
 * `T` where it is JSON, `never` where it is not. Only for comparisons. The first line also ends the recursion through
 * `Json` and other recursive unions. Interfaces never match it (they have no index signature), so the rest walks into
 * them.
 */
type JsonOf<T> = [T] extends [Json | Scalar]
  ? T
  : T extends Refused
    ? never
    : T extends object
      ? { [K in keyof T]: JsonOf<T[K]> }
      : T;

/** The message about each invalid place; evaluated only for outputs that are rejected. */
type Problem<T, Path extends string, Depth extends 0[] = []> = T extends Scalar
  ? never
  : T extends Refused
    ? Sentence<T, Path>
    : Depth["length"] extends 5
      ? never
      : T extends readonly (infer Element)[]
        ? Problem<Element, `${Path}[]`, [...Depth, 0]>
        : T extends object
          ? { [K in keyof T & string]: Problem<T[K], `${Path}.${K}`, [...Depth, 0]> }[keyof T & string]
          : never;

type Sentence<T, Path extends string> = T extends Date
  ? `${Path} is a Date; return date.toISOString() instead`
  : T extends bigint
    ? `${Path} is a bigint; return String(value) instead`
    : T extends Collection
      ? `${Path} is a Map or Set; return an array or a plain object instead`
      : T extends PromiseLike<unknown>
        ? `${Path} is a Promise; await it first`
        : T extends Binary
          ? `${Path} is binary; store it elsewhere and return its address`
          : T extends Callable
            ? `${Path} is a function; return plain data only`
            : `${Path} is not JSON; return plain data only`;
