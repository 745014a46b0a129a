/** The base class of built-in triggers: a checked call without code. */

import { show, TriggerError } from "../check/errors.ts";
import { isName, NAME_FORM } from "../check/name.ts";
import { jsonCopy } from "../check/output-check.ts";
import type { Json, TriggerCall } from "../manifest.ts";
import { type Duration, durationMs } from "../schedule/duration.ts";
import { isoInstant, MOMENT_FORMS } from "../schedule/instant.ts";
import type { BuiltinKind, BuiltinTriggers } from "./builtin-triggers.ts";
import { CALL, type EVENT, type Waitable } from "./waitable.ts";

/**
 * Options of every built-in trigger.
 * @example const place: TriggerPlace = { queue: "etl-host" };
 */
export interface TriggerPlace {
  /** The queue of the triggerers that run it, e.g. those that can reach its source (default "default"). */
  readonly queue?: string;
}

/**
 * Options of every built-in trigger that polls.
 * @example const options: PollOptions = { interval: "30s", queue: "etl-host" };
 */
export interface PollOptions extends TriggerPlace {
  /** The time between two polls; the first poll is immediate (default "10s"). */
  readonly interval?: Duration;
}

/** A trigger that the engine runs. */
export abstract class BuiltinTrigger<Kind extends BuiltinKind>
  implements Waitable<BuiltinTriggers[Kind]["event"]>
{
  declare readonly [EVENT]?: BuiltinTriggers[Kind]["event"];
  readonly #call: TriggerCall;

  constructor(
    kind: Kind,
    args: BuiltinTriggers[Kind]["args"],
    more: {
      readonly queue: string;
      readonly wake?: TriggerCall["wake"];
      readonly timed?: TriggerCall["timed"];
    },
  ) {
    this.#call = {
      kind,
      args: checkedJson(kind, "args", args),
      source: "builtin",
      queue: more.queue,
      replicas: 1,
      wake: more.wake ?? null,
      timed: more.timed ?? null,
    };
  }

  [CALL](_now: Date | null): TriggerCall {
    return this.#call;
  }
}

/** Reads the options of one built-in trigger and rejects unknown names. */
export class OptionReader<O extends object> {
  readonly #name: string;
  readonly #given: Readonly<Record<string, unknown>>;
  readonly #known = new Set(["queue"]);

  constructor(name: string, options: O) {
    this.#name = name;
    if (typeof options !== "object" || options === null || Array.isArray(options)) {
      throw new TriggerError("TW_TRIGGER_ARGS", `${name}: takes an object of options, got ${show(options)}`);
    }
    this.#given = options as Readonly<Record<string, unknown>>;
  }

  text(option: keyof O & string): string {
    return this.optionalText(option) ?? this.#refuse(option, "is required: a non-empty text");
  }

  optionalText(option: keyof O & string): string | null {
    const value = this.#value(option);
    if (value === null || (typeof value === "string" && value !== "")) return value;
    return this.#refuse(option, "must be a non-empty text");
  }

  whole(option: keyof O & string, bounds: { min: number; fallback?: number }): number {
    const value = this.#value(option) ?? bounds.fallback;
    if (Number.isInteger(value) && (value as number) >= bounds.min) return value as number;
    return this.#refuse(option, `must be a whole number of ${bounds.min} or more`);
  }

  optionalWhole(option: keyof O & string, min: number): number | null {
    return this.#value(option) === null ? null : this.whole(option, { min });
  }

  flag(option: keyof O & string): boolean {
    const value = this.#value(option) ?? false;
    return typeof value === "boolean" ? value : this.#refuse(option, "must be true or false");
  }

  moment(option: keyof O & string): string {
    return this.optionalMoment(option) ?? this.#refuse(option, `is required: ${MOMENT_FORMS}`);
  }

  optionalMoment(option: keyof O & string): string | null {
    const value = this.#value(option);
    return value === null ? null : (isoInstant(value) ?? this.#refuse(option, `must be ${MOMENT_FORMS}`));
  }

  /** Requires exactly one of two options. */
  oneOf(a: keyof O & string, b: keyof O & string): void {
    if ((this.#value(a) === null) === (this.#value(b) === null)) {
      throw new TriggerError("TW_TRIGGER_ARGS", `${this.#name}: give either ${a} or ${b}`);
    }
  }

  /** A list of some words, sorted and without duplicates, so that equal waits have equal arguments. */
  words<const W extends string>(option: keyof O & string, known: readonly W[], fallback: readonly W[]): W[] {
    const value = this.#value(option) ?? fallback;
    if (Array.isArray(value) && value.length > 0 && value.every((word) => known.includes(word))) {
      return [...new Set(value as W[])].sort();
    }
    return this.#refuse(option, `must be a list of ${known.map((word) => `"${word}"`).join(", ")}`);
  }

  json(option: keyof O & string): Json {
    return checkedJson(this.#name, option, this.#value(option));
  }

  texts(option: keyof O & string): Record<string, string> {
    const value = this.#value(option) ?? {};
    if (
      typeof value === "object" &&
      !Array.isArray(value) &&
      Object.values(value).every((text) => typeof text === "string")
    ) {
      return value as Record<string, string>;
    }
    return this.#refuse(option, "must be an object of texts");
  }

  /** The raw value, for checks that only one trigger needs; null if it is missing. */
  raw(option: keyof O & string): unknown {
    return this.#value(option);
  }

  duration(option: keyof O & string, fallback?: Duration): number {
    return durationMs(this.#value(option) ?? fallback, `${this.#name}: ${option}`);
  }

  /** At least a millisecond: a trigger without a pause would starve others. */
  interval(): number {
    return Math.max(1, this.duration("interval" as keyof O & string, "10s"));
  }

  /** Called last: the queue of the trigger, after rejecting options that were not read. */
  place(): { readonly queue: string } {
    for (const name of Object.keys(this.#given)) {
      if (this.#known.has(name)) continue;
      throw new TriggerError(
        "TW_TRIGGER_ARGS",
        `${this.#name}: unknown option "${name}"; known options: ${[...this.#known].sort().join(", ")}`,
      );
    }
    const queue = this.#value("queue") ?? "default";
    return { queue: isName(queue) ? queue : this.#refuse("queue", `must be ${NAME_FORM}`) };
  }

  refuse(option: keyof O & string, problem: string): never {
    return this.#refuse(option, problem);
  }

  #value(option: string): unknown {
    this.#known.add(option);
    return this.#given[option] ?? null;
  }

  #refuse(option: string, problem: string): never {
    throw new TriggerError(
      "TW_TRIGGER_ARGS",
      `${this.#name}: ${option} ${problem}, got ${show(this.#given[option])}`,
    );
  }
}

function checkedJson(name: string, option: string, value: unknown): Json {
  const refused = (message: string) => new TriggerError("TW_TRIGGER_ARGS", `${name}: ${message}`);
  return jsonCopy(value, { root: option, notJson: refused, tooLarge: refused });
}
