/**
 * Is a task's output JSON? Asked of the compiler, beside inference and never inside it: an output keeps its natural
 * type (`Output<number>`, not `Output<42>`), and what is refused says where and why, e.g.
 * `NotJson<"output.rows[].at is a Date; return date.toISOString() instead">`.
 * A promise of `unknown` is refused, as the answer of `response.json()`. `any` passes, and so does `unknown` that is no
 * promise: while the compiler infers R it is `unknown`, too. The check at run time (output-check.ts) has the last word.
 */

import type { Json } from "../manifest.ts";
import type { Control } from "../signal/control.ts";

declare const WHY: unique symbol;

/** Not a real type: the compiler's way to tell the author what is wrong with an output. */
export interface NotJson<Message extends string> {
  readonly [WHY]: Message;
}

/** What a handler's result leaves for downstream tasks: awaited, without {@link skip} and {@link fail}. */
export type Produced<R> = Exclude<Awaited<R>, Control>;

/** `unknown` when the result of a handler is JSON, otherwise a {@link NotJson} that no function satisfies. */
export type ReturnsJson<R> = unknown extends R
  ? unknown
  : [unknown, IsAny<Awaited<R>>] extends [Awaited<R>, false]
    ? NotJson<"output is unknown; give it a type that is JSON, e.g. by a schema that checks it">
    : [Produced<R>] extends [JsonOf<Produced<R>>]
      ? unknown
      : NotJson<Problem<Produced<R>, "output">>;

type IsAny<T> = 0 extends 1 & T ? true : false;

/** As {@link ReturnsJson}, for what a trigger fires with. */
export type EventIsJson<Event> = IsJson<Event, "event">;

/** `unknown` when `T` is JSON, otherwise a {@link NotJson} whose sentence begins with `Root`. */
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
 * `T` itself where `T` is JSON, `never` in the places where it is not. Compared, never shown. The first line is more
 * than a short cut: it ends the walk through `Json` and other recursive unions. Interfaces never pass it (they have no
 * index signature), so the rest walks into them.
 */
type JsonOf<T> = [T] extends [Json | Scalar]
  ? T
  : T extends Refused
    ? never
    : T extends object
      ? { [K in keyof T]: JsonOf<T[K]> }
      : T;

/** The sentence about each offending place; evaluated only for outputs already known to be refused. */
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
