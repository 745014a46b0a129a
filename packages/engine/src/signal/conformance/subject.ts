/** The subject of the conformance suite, and its helpers. */
import type { Connection } from "../../store/database/database.ts";
import type { Signal, SignalToSend } from "../signal.ts";
import type { SignalService, SignalWatcher } from "../signal-service.ts";

export interface ConformanceSubject {
  /** On a separate, empty log. */
  readonly service: SignalService;
  /** A service of another process, on the same log. */
  another(): Promise<SignalService>;
  /** Sends signals that become visible at `commit`. Omitted if signals are always visible as soon as they are sent. */
  sendLate?(signals: readonly SignalToSend[]): Promise<{ commit(): Promise<void> }>;
  /** For services with transactions: records an effect in a transaction, and reads all recorded effects. */
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

/** Collects signals, and resolves when a number is reached. */
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

  /** Resolves when it has this many signals. */
  async reach(count: number): Promise<void> {
    if (this.signals.length >= count) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiter = { count, resolve };
    this.#waiting.add(waiter);
    try {
      await within(promise, () => `only ${this.signals.length} of ${count} signals arrived`);
    } finally {
      this.#waiting.delete(waiter);
    }
  }

  /** The values of each key, in order of arrival. */
  byKey(): Map<string, unknown[]> {
    const found = Map.groupBy(this.signals, ({ key, namespace }) => `${namespace}/${key}`);
    return new Map([...found].map(([name, signals]) => [name, signals.map(({ value }) => value)]));
  }
}

/** Collects each signal once, for services that deliver at least once. */
export class FirstDeliveries extends Collector {
  readonly #versions = new Set<number>();

  override async process(signals: readonly Signal[], tx: Connection | null): Promise<void> {
    const first = signals.filter(({ version }) => !this.#versions.has(version));
    for (const { version } of first) this.#versions.add(version);
    await super.process(first, tx);
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

/** A one-shot latch. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}
