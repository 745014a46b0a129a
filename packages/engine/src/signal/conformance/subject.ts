/** What the conformance suite is run on, and how it watches. */
import type { Connection } from "../../store/database/database.ts";
import type { Signal, SignalToSend } from "../signal.ts";
import type { SignalService, SignalWatcher } from "../signal-service.ts";

export interface ConformanceSubject {
  /** On a log of its own, empty. */
  readonly service: SignalService;
  /** Another process's, on the same log. */
  another(): Promise<SignalService>;
  /** Sends without letting anybody see it before `commit`. Left out: everything is seen when it is sent. */
  sendLate?(signals: readonly SignalToSend[]): Promise<{ commit(): Promise<void> }>;
  /** For services with transactions: notes something in one, and reads all that was noted. */
  readonly effects?: {
    note(tx: Connection, text: string): Promise<void>;
    read(): Promise<readonly string[]>;
  };
  close(): Promise<void>;
}

export interface ConformanceCase {
  readonly name: string;
  readonly run: () => Promise<void>;
}

const PATIENCE_MS = 20_000;

/** Keeps what it is given, and tells when it is enough. */
export class Collector implements SignalWatcher {
  readonly signals: Signal[] = [];
  readonly #before: ((signals: readonly Signal[], tx: Connection | null) => Promise<void>) | undefined;
  readonly #waiting = new Set<{ count: number; resolve: () => void }>();

  constructor(before?: (signals: readonly Signal[], tx: Connection | null) => Promise<void>) {
    this.#before = before;
  }

  get keys(): string[] {
    return this.signals.map(({ key }) => key);
  }

  get values(): unknown[] {
    return this.signals.map(({ value }) => value);
  }

  async process(signals: readonly Signal[], tx: Connection | null): Promise<void> {
    await this.#before?.(signals, tx);
    this.signals.push(...signals);
    for (const waiter of this.#waiting) if (this.signals.length >= waiter.count) waiter.resolve();
  }

  /** Resolves when it has so many. */
  async reach(count: number): Promise<void> {
    if (this.signals.length >= count) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiter = { count, resolve };
    this.#waiting.add(waiter);
    try {
      await within(promise, () => `only ${this.signals.length} of ${count} signals came`);
    } finally {
      this.#waiting.delete(waiter);
    }
  }

  /** The values of each key, in the order they came. */
  byKey(): Map<string, unknown[]> {
    const found = Map.groupBy(this.signals, ({ key, namespace }) => `${namespace}/${key}`);
    return new Map([...found].map(([name, signals]) => [name, signals.map(({ value }) => value)]));
  }
}

export async function within<T>(promise: Promise<T>, late: () => string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${late()} within ${PATIENCE_MS / 1000} s`)), PATIENCE_MS);
  });
  try {
    return await Promise.race([promise, deadline]);
  } finally {
    clearTimeout(timer);
  }
}

/** A door that opens once. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}
