/** The signals of a test: those that were given to it, and those that tasks of the run have sent. */
import { fitsWait, type RunName, type SignalFacts } from "@tradewind/engine/model";
import type { Json } from "@tradewind/sdk";
import type { SignalArgs, SignalEvent } from "@tradewind/sdk/builtin-triggers";
import type { SignalToSend } from "@tradewind/sdk/program";
import { DagTestError } from "./errors.ts";
import type { GivenSignal } from "./options.ts";
import type { SentSignal } from "./result.ts";

export class SignalLog {
  readonly #log: SignalFacts[] = [];
  #heard: () => void = () => {};

  constructor(given: readonly GivenSignal[]) {
    for (const { namespace = "default", key, value } of given)
      this.#add({ namespace, key, value: jsonOf(key, value) }, null);
  }

  /** What the run itself has sent, in order. */
  get sent(): SentSignal[] {
    return this.#log.flatMap(({ from, ...signal }) => (from === null ? [] : [signal]));
  }

  /** Called after each signal that is sent from now on. */
  onSend(heard: () => void): void {
    this.#heard = heard;
  }

  send(signal: SignalToSend, from: RunName): { readonly version: number } {
    const version = this.#add(structuredClone(signal), from);
    this.#heard();
    return { version };
  }

  /** The first that a wait is over with; null: there is none yet. Everything here was sent since the run started. */
  first(args: Json): SignalEvent | null {
    const wait = args as unknown as SignalArgs;
    const found = this.#log.find((signal) => signal.version > (wait.after ?? 0) && fitsWait(wait, signal));
    return found ? { key: found.key, value: found.value, version: found.version } : null;
  }

  #add({ namespace, key, value }: SignalToSend, from: RunName | null): number {
    const version = this.#log.length + 1;
    this.#log.push({ namespace, key, value, version, from });
    return version;
  }
}

function jsonOf(key: string, value: unknown): Json {
  try {
    return JSON.parse(JSON.stringify(value ?? null)) as Json;
  } catch (cause) {
    throw new DagTestError(
      "TW_TEST_BAD_OPTION",
      `signals: the value of "${key}" must be JSON: ${String(cause)}`,
    );
  }
}
