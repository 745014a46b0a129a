/** The base of the triggers that the engine itself runs: a checked call, and no code. */

import { show, TriggerError } from "../check/errors.ts";
import { isName, NAME_FORM } from "../check/name.ts";
import { jsonCopy } from "../check/output-check.ts";
import type { Json, TriggerCall } from "../manifest.ts";
import { type Duration, durationMs } from "../schedule/duration.ts";
import { isoInstant, MOMENT_FORMS } from "../schedule/instant.ts";
import type { BuiltinKind, BuiltinTriggers } from "./builtin-triggers.ts";
import { CALL, type EVENT, type Waitable } from "./waitable.ts";

/** What every built-in trigger takes. */
export interface TriggerPlace {
  /** Which triggerers run it ("default"): those that can reach what it looks at. */
  readonly queue?: string;
}

/** What every built-in trigger takes that asks again and again. */
export interface PollOptions extends TriggerPlace {
  /** How long from one look to the next ("10s"); the first is at once. */
  readonly interval?: Duration;
}

/** A trigger that the engine knows. */
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

/** Reads the options of one built-in trigger, and refuses names that nobody reads. */
export class OptionReader<O extends object> {
  readonly #name: string;
  readonly #given: Readonly<Record<string, unknown>>;
  readonly #asked = new Set(["queue"]);

  constructor(name: string, options: O) {
    this.#name = name;
    if (typeof options !== "object" || options === null || Array.isArray(options)) {
      throw new TriggerError("TW_TRIGGER_ARGS", `${name}: takes an object of options, got ${show(options)}`);
    }
    this.#given = options as Readonly<Record<string, unknown>>;
  }

  text(option: keyof O & string): string {
    return this.optionalText(option) ?? this.#refuse(option, "is needed: a non-empty text");
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
    return this.optionalMoment(option) ?? this.#refuse(option, `is needed: ${MOMENT_FORMS}`);
  }

  optionalMoment(option: keyof O & string): string | null {
    const value = this.#value(option);
    return value === null ? null : (isoInstant(value) ?? this.#refuse(option, `must be ${MOMENT_FORMS}`));
  }

  /** Exactly one of two ways to name the same thing. */
  oneOf(a: keyof O & string, b: keyof O & string): void {
    if ((this.#value(a) === null) === (this.#value(b) === null)) {
      throw new TriggerError("TW_TRIGGER_ARGS", `${this.#name}: give either ${a} or ${b}`);
    }
  }

  /** A list of some words, without duplicates and in order, so that equal waits look equal. */
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

  /** As given, for checks that only one trigger needs; null when it is left out. */
  raw(option: keyof O & string): unknown {
    return this.#value(option);
  }

  duration(option: keyof O & string, fallback?: Duration): number {
    return durationMs(this.#value(option) ?? fallback, `${this.#name}: ${option}`);
  }

  /** At least a millisecond: one that never rests would starve its neighbours. */
  interval(): number {
    return Math.max(1, this.duration("interval" as keyof O & string, "10s"));
  }

  /** To be called last: where the trigger runs, after refusing the options that nobody asked for. */
  place(): { readonly queue: string } {
    for (const name of Object.keys(this.#given)) {
      if (this.#asked.has(name)) continue;
      throw new TriggerError(
        "TW_TRIGGER_ARGS",
        `${this.#name}: unknown option "${name}"; known options: ${[...this.#asked].sort().join(", ")}`,
      );
    }
    const queue = this.#value("queue") ?? "default";
    return { queue: isName(queue) ? queue : this.#refuse("queue", `must be ${NAME_FORM}`) };
  }

  refuse(option: keyof O & string, problem: string): never {
    return this.#refuse(option, problem);
  }

  #value(option: string): unknown {
    this.#asked.add(option);
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
