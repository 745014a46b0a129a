/**
 * Sends signals in batches: signals that arrive during a transaction are sent with the next one. A single signal is sent
 * at once; under load hundreds share a commit.
 *
 * A signal without a client gets a client id of its own, so that a transaction whose answer was lost can be repeated
 * safely: stored signals are found, the others are stored.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { EngineError } from "../service/errors.ts";
import type { SignalDraft, StoredSignal } from "../store/signal/signals.ts";
import type { SentSignal } from "./signal.ts";

interface Parcel {
  readonly drafts: readonly SignalDraft[];
  readonly resolve: (stored: StoredSignal[]) => void;
  readonly reject: (error: unknown) => void;
}

export interface SenderOptions {
  readonly store: (drafts: readonly SignalDraft[]) => Promise<StoredSignal[]>;
  /** Called after each commit. */
  readonly onSent: () => void;
  /** True if the signals were not stored or may not have been: then they are sent again. */
  readonly isPassing: (error: unknown) => boolean;
  /** How long it retries. */
  readonly patienceMs?: number;
}

const MAX_TOGETHER = 2_000;

export class Sender {
  readonly #options: SenderOptions;
  readonly #client = randomBytes(9).toString("base64url");
  #sequence = 0;
  #waiting: Parcel[] = [];
  #sending: Promise<void> | null = null;
  #isClosed = false;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  send(drafts: readonly SignalDraft[]): Promise<StoredSignal[]> {
    if (this.#isClosed)
      return Promise.reject(new EngineError("SIGNAL_SERVICE_CLOSED", "The signal service was closed."));
    if (drafts.length === 0) return Promise.resolve([]);
    const numbered = drafts.map((draft) =>
      draft.client === undefined ? { ...draft, client: this.#client, sequence: this.#sequence++ } : draft,
    );
    return new Promise((resolve, reject) => {
      this.#waiting.push({ drafts: numbered, resolve, reject });
      this.#sending ??= this.#run().finally(() => {
        this.#sending = null;
      });
    });
  }

  /** Waits for pending sends. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#sending;
  }

  async #run(): Promise<void> {
    // Several sends in a row, in the same turn, share one transaction.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      const parcels = this.#drain();
      try {
        const stored = await this.#patiently(parcels.flatMap(({ drafts }) => drafts));
        const entries = stored.values();
        for (const { drafts, resolve } of parcels) resolve(entries.take(drafts.length).toArray());
        this.#options.onSent();
      } catch (error) {
        await this.#apart(parcels, error);
      }
    }
  }

  #drain(): Parcel[] {
    let signals = 0;
    const count = this.#waiting.findIndex(({ drafts }, at) => {
      signals += drafts.length;
      return at > 0 && signals > MAX_TOGETHER;
    });
    return this.#waiting.splice(0, count < 0 ? this.#waiting.length : count);
  }

  /** One signal that cannot be stored must not affect the others. */
  async #apart(parcels: readonly Parcel[], error: unknown): Promise<void> {
    if (parcels.length === 1 || this.#options.isPassing(error)) {
      for (const { reject } of parcels) reject(error);
      return;
    }
    for (const { drafts, reject, resolve } of parcels) await this.#patiently(drafts).then(resolve, reject);
    this.#options.onSent();
  }

  async #patiently(drafts: readonly SignalDraft[]): Promise<StoredSignal[]> {
    const deadline = performance.now() + (this.#options.patienceMs ?? 15_000);
    for (let waitMs = 20; ; waitMs = Math.min(waitMs * 2, 1_000)) {
      try {
        return await this.#options.store(drafts);
      } catch (error) {
        if (!this.#options.isPassing(error) || performance.now() + waitMs > deadline) throw error;
        await sleep(waitMs);
      }
    }
  }
}

/** The stored signals in the form that the caller receives. Throws SIGNAL_SEQUENCE_REUSED if a sequence belongs to another signal. */
export function showSent(drafts: readonly SignalDraft[], stored: readonly StoredSignal[]): SentSignal[] {
  return stored.map(({ createdAt, id, isDuplicate, key, namespace, tx }, at) => {
    const draft = drafts[at]!;
    if (draft.key !== key || draft.namespace !== namespace) {
      throw new EngineError(
        "SIGNAL_SEQUENCE_REUSED",
        `Client "${draft.client}" has sent number ${draft.sequence} before, as the signal "${key}" of "${namespace}", not "${draft.key}" of "${draft.namespace}": number signals without repetition.`,
      );
    }
    return { namespace, key, version: id, position: `${tx}-${id}`, time: createdAt, isDuplicate };
  });
}
