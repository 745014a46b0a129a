/** The signals of a test: given signals, and signals that tasks of the run have sent. */
import { fitsWait, type RunName, type SignalFacts } from "@tradewind/engine/model";
import type { Json } from "@tradewind/sdk";
import type { SignalArgs, SignalEvent } from "@tradewind/sdk/builtin-triggers";
import type { ReceivedSignal, SignalToSend } from "@tradewind/sdk/program";
import { DagTestError } from "../errors.ts";
import type { SentSignal } from "../result.ts";

/** A stream without end and without a pause would block the run. */
const MAX_SENT = 10_000;

export interface SignalListener {
  /** Called with each new signal. */
  readonly received: (signal: SignalFacts) => void;
  /** The test cannot run as written. */
  readonly refuse: (error: DagTestError) => void;
}

export class SignalLog {
  readonly #log: SignalFacts[] = [];
  readonly #sent: SentSignal[] = [];
  #listener: SignalListener = { received: () => {}, refuse: () => {} };

  /** The signals that the run itself has sent, in order. */
  get sent(): readonly SentSignal[] {
    return this.#sent;
  }

  listen(listener: SignalListener): void {
    this.#listener = listener;
  }

  /** Adds an external signal. */
  addExternal(signal: SignalToSend): SentSignal {
    return this.#add(signal, null);
  }

  /** Adds a signal of a task of the run. */
  send(signal: SignalToSend, from: RunName): SentSignal {
    if (this.#sent.length >= MAX_SENT) {
      const error = new DagTestError(
        "TW_TEST_ENDLESS",
        `the tasks of "${from.dagId}" have sent ${MAX_SENT} signals, the last one "${signal.key}"`,
        "let the source of a streaming task end or pause in a test, until ctx.abort is aborted",
      );
      this.#listener.refuse(error);
      throw error;
    }
    const sent = this.#add(structuredClone(signal), from);
    this.#sent.push(sent);
    return sent;
  }

  /** The first signal that ends a wait; null: there is none yet. All signals here were sent since the run started. */
  first(args: Json): SignalEvent | null {
    const wait = args as unknown as SignalArgs;
    const found = this.#log.find((signal) => signal.version > (wait.after ?? 0) && fitsWait(wait, signal));
    return found ? { key: found.key, value: found.value, version: found.version } : null;
  }

  /** Copies, as in production: no task can change the input of another. */
  byVersion(versions: readonly number[]): ReceivedSignal[] {
    return versions.flatMap((version) => {
      const found = this.#log[version - 1];
      if (!found) return [];
      const { key, namespace, value } = found;
      return [structuredClone({ namespace, key, value, version })];
    });
  }

  #add({ namespace, key, value }: SignalToSend, from: RunName | null): SentSignal {
    const added = { namespace, key, value, version: this.#log.length + 1 };
    this.#log.push({ ...added, from });
    this.#listener.received({ ...added, from });
    return added;
  }
}
