/**
 * A signal service at the other end of a connection. Listeners run here, in the process of their watchers, and keep their
 * records there. No transaction spans both, so an effect may be repeated if its commit fails.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { EngineError } from "../service/errors.ts";
import { type Logger, silentLogger } from "../service/logger.ts";
import type { SignalDraft, StoredSignal } from "../store/signal/signals.ts";
import type { LogStart } from "../store/signal/signals-position.ts";
import type { Listener } from "./listener.ts";
import { type ListenArguments, RunningListeners } from "./running-listeners.ts";
import { Sender, showSent } from "./sender.ts";
import {
  DEFAULT_NAMESPACE,
  readPosition,
  requireList,
  requireSendable,
  type SentSignal,
  type SignalStart,
  type SignalToSend,
} from "./signal.ts";
import type { HeldListener, SignalService } from "./signal-service.ts";

/** The differences between gRPC and HTTP. Calls reject with SIGNAL_SERVICE_AWAY while the service is unreachable. */
export type SignalTransport = Omit<SignalService, "hasTransactions" | "listen">;

export interface RemoteSignalsOptions {
  readonly logger?: Logger | undefined;
  /** The default sender of signals; the name of the token if omitted. */
  readonly sender?: string | undefined;
}

export class RemoteSignals implements SignalService {
  readonly hasTransactions = false;
  readonly records: SignalService["records"];
  readonly list: SignalService["list"];
  readonly position: SignalService["position"];
  readonly subscribe: SignalService["subscribe"];
  readonly readKey: SignalService["readKey"];
  readonly deadLetters: SignalService["deadLetters"];
  readonly #transport: SignalTransport;
  readonly #options: RemoteSignalsOptions;
  readonly #sender: Sender;
  readonly #listeners: RunningListeners;

  constructor(transport: SignalTransport, options: RemoteSignalsOptions = {}) {
    this.#transport = transport;
    this.#options = options;
    this.records = {
      ...transport.records,
      commit: (claim, change, effect) =>
        commitAfter(effect, () => transport.records.commit(claim, change), claim),
    };
    this.list = (query) => transport.list(query);
    this.position = (start) => transport.position(start);
    this.subscribe = (filter, place) => transport.subscribe(filter, place);
    this.readKey = (query) => transport.readKey(query);
    this.deadLetters = (listener) => transport.deadLetters(listener);
    this.#listeners = new RunningListeners({
      service: this,
      records: this.records,
      start: (from) => this.#start(from),
      logger: options.logger ?? silentLogger,
    });
    this.#sender = new Sender({
      store: async (drafts) => (await transport.send(drafts.map(unsent))).map(storedSignal),
      onSent: () => {},
      isPassing: isAway,
    });
  }

  async send(signals: readonly SignalToSend[]): Promise<SentSignal[]> {
    const drafts = requireList(signals).map((signal): SignalDraft => {
      requireSendable(signal);
      const { namespace = DEFAULT_NAMESPACE, sender = this.#options.sender ?? "", value = null } = signal;
      return { ...signal, namespace, sender, value };
    });
    return showSent(drafts, await this.#sender.send(drafts));
  }

  listen(...call: ListenArguments): Promise<Listener> {
    return this.#listeners.listen(...call);
  }

  async close(): Promise<void> {
    await this.#listeners.stop();
    await this.#sender.close();
    await this.#transport.close();
  }

  async #start(from: SignalStart): Promise<LogStart> {
    const { afterVersion = null, position, since = null } = await this.#transport.position(from);
    return { position: readPosition(position), afterVersion, since };
  }
}

/**
 * The effect, then the commit. Storing a change twice is harmless: if the service does not answer, only the commit is
 * sent again, for a third of the lease.
 */
async function commitAfter<T>(
  effect: ((tx: null) => Promise<void>) | undefined,
  commit: () => Promise<T>,
  { ttlMs }: HeldListener,
): Promise<T> {
  await effect?.(null);
  const giveUpAt = performance.now() + ttlMs / 3;
  for (let waitMs = 20; ; waitMs *= 2) {
    try {
      return await commit();
    } catch (error) {
      if (!isAway(error) || performance.now() + waitMs > giveUpAt) throw error;
      await sleep(waitMs);
    }
  }
}

/** The service is temporarily unreachable. */
export function isAway(error: unknown): boolean {
  return error instanceof EngineError && error.code === "SIGNAL_SERVICE_AWAY";
}

export function awayError(address: string, why: string, cause?: unknown): EngineError {
  return new EngineError(
    "SIGNAL_SERVICE_AWAY",
    `The signal service at ${address} does not answer: ${why}. Retrying.`,
    { cause },
  );
}

function unsent({ sender, ...draft }: SignalDraft): SignalToSend {
  return sender === "" ? draft : { ...draft, sender };
}

function storedSignal({ isDuplicate, key, namespace, position, time, version }: SentSignal): StoredSignal {
  return { id: version, tx: readPosition(position).tx, createdAt: time, namespace, key, isDuplicate };
}
