/** The definition of a built-in kind, and its conversion to a program for the trigger runner. */
import type { BuiltinTriggers } from "@tradewind/sdk/builtin-triggers";
import type { Json } from "@tradewind/sdk/manifest";
import type { RunningTrigger, TriggerHost, TriggerProgram } from "@tradewind/sdk/program";
import { Misfit, type Reader } from "./argument-readers.ts";
import { badArguments } from "./trigger-error.ts";

export interface BuiltinKind {
  readonly program: TriggerProgram;
  /** Polls once. */
  check(args: Json, host: TriggerHost): Promise<Json | undefined>;
}

/** The host of a built-in trigger, with more than user-defined triggers get. */
export interface BuiltinHost extends TriggerHost {
  /** The last event of an earlier start that this one continues. */
  readonly lastEvent?: Json;
  /** The state of the last event has ended: when it returns, it is a new event. */
  ceased?(): void;
  /** The members of a wait for all that have fired so far. */
  members?(fired: readonly string[]): void;
}

export interface Fired {
  readonly payload: Json;
  readonly key: string | null;
}

type Kind = keyof BuiltinTriggers;
type ArgsOf<K extends Kind> = BuiltinTriggers[K]["args"];

export interface KindParts<K extends Kind> {
  readonly args: Reader<ArgsOf<K>>;
  /** Yields each event, is resumed when it is stored, and returns when there are no more or `host.abort` fires. */
  run(args: ArgsOf<K>, host: BuiltinHost): AsyncGenerator<Fired, void, void>;
  check(args: ArgsOf<K>, host: TriggerHost): Promise<Json | undefined>;
}

export function builtinKind<K extends Kind>(id: K, parts: KindParts<K>): BuiltinKind {
  const read = (args: Json): ArgsOf<K> => {
    try {
      return parts.args(args);
    } catch (error) {
      if (error instanceof Misfit) throw badArguments(id, error.message);
      throw error;
    }
  };
  return {
    program: {
      protocol: 1,
      id,
      start: async (args, host) => running(parts.run(read(args), host)),
    },
    check: async (args, host) => parts.check(read(args), host),
  };
}

function running(events: AsyncGenerator<Fired, void, void>): RunningTrigger {
  return {
    next: async () => {
      const { done, value } = await events.next();
      return done ? { kind: "done" } : { kind: "event", ...value };
    },
    // Runs the generator's finally blocks; a generator inside an await has received the abort.
    cleanup: async () => {
      await events.return();
    },
  };
}
