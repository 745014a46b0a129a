/** Sends and listens, in this process or (participant-process.ts) in a separate one; times are those of clock.ts. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Signal } from "../../packages/engine/src/signal/signal.ts";
import type { Listening, SignalService } from "../../packages/engine/src/signal/signal-service.ts";
import { clockMs } from "./clock.ts";

export interface ListenOrder {
  readonly listeners: number;
  /** `#` stands for the listener's number. */
  readonly key: string;
  /** Prefix of the listeners' names: their positions are stored. Without a name nothing is stored. */
  readonly name: string | null;
}

export interface FloodOrder {
  /** Each sends one signal, and the next when that one is stored. */
  readonly writers: number;
  readonly signals: number;
  /** `#` stands for the writer's number. */
  readonly key: string;
}

export interface PaceOrder {
  readonly signals: number;
  readonly key: string;
  /** Time between two signals, random between these: in step with nothing. */
  readonly gapMs: readonly [least: number, most: number];
}

export interface Moment {
  readonly id: number;
  readonly at: number;
}

/** The results of commands. */
export interface Commands {
  /** Resolves when all listeners are active. */
  listen(order: ListenOrder): Promise<null>;
  /** Resolves, with the time, when all listeners together have received this many signals since the last `forget`. */
  heard(signals: number): Promise<number>;
  /** When each signal of a `pace` was received, by the first line of a watcher; with several listeners, the last. */
  arrivals(): Promise<Moment[]>;
  forget(): Promise<null>;
  unlisten(): Promise<null>;
  flood(order: FloodOrder): Promise<{ from: number; to: number }>;
  /** When `send` was called for each, and when it had resolved. */
  pace(order: PaceOrder): Promise<{ sent: Moment[]; stored: Moment[] }>;
}

export class Participant implements Commands {
  readonly #service: SignalService;
  readonly #listening: Listening[] = [];
  #heard = 0;
  #arrivals = new Map<number, number>();
  #awaited: { signals: number; resolve: (at: number) => void } | null = null;

  constructor(service: SignalService) {
    this.#service = service;
  }

  async listen({ key, listeners, name }: ListenOrder): Promise<null> {
    const watcher = { process: (signals: readonly Signal[]) => this.#hear(signals) };
    const opened = await Promise.all(
      Array.from({ length: listeners }, (_, at) =>
        this.#service.listen(
          name === null ? null : `${name}${at}`,
          { key: key.replace("#", String(at)) },
          watcher,
        ),
      ),
    );
    this.#listening.push(...opened);
    return null;
  }

  heard(signals: number): Promise<number> {
    return new Promise((resolve) => {
      this.#awaited = { signals, resolve };
      this.#look();
    });
  }

  async arrivals(): Promise<Moment[]> {
    return [...this.#arrivals].map(([id, at]) => ({ id, at }));
  }

  async forget(): Promise<null> {
    this.#heard = 0;
    this.#arrivals = new Map();
    return null;
  }

  async unlisten(): Promise<null> {
    await Promise.all(this.#listening.splice(0).map((each) => each.stop()));
    return null;
  }

  async flood({ key, signals, writers }: FloodOrder): Promise<{ from: number; to: number }> {
    const from = clockMs();
    let left = signals;
    const write = async (writer: number) => {
      const own = key.replace("#", String(writer));
      while (left-- > 0) await this.#service.send([{ key: own, value: { n: left, text: "as signals are" } }]);
    };
    await Promise.all(Array.from({ length: writers }, (_, writer) => write(writer)));
    return { from, to: clockMs() };
  }

  async pace({ gapMs: [least, most], key, signals }: PaceOrder) {
    const sent: Moment[] = [];
    const stored: Moment[] = [];
    const sending: Promise<unknown>[] = [];
    let due = clockMs();
    for (let id = 1; id <= signals; id++) {
      due += least + (most - least) * Math.random();
      const ahead = due - clockMs();
      if (ahead > 0) await sleep(ahead);
      sent.push({ id, at: clockMs() });
      const send = this.#service.send([{ key, value: { id } }]);
      // Does not wait for a send: a slow one must not reduce the rate of the next ones.
      sending.push(send.then(() => stored.push({ id, at: clockMs() })));
    }
    await Promise.all(sending);
    return { sent, stored };
  }

  #hear(signals: readonly Signal[]): void {
    const at = clockMs();
    this.#heard += signals.length;
    for (const { value } of signals) {
      const id = (value as { id?: number } | null)?.id;
      if (id !== undefined) this.#arrivals.set(id, at);
    }
    this.#look();
  }

  #look(): void {
    if (this.#awaited === null || this.#heard < this.#awaited.signals) return;
    this.#awaited.resolve(clockMs());
    this.#awaited = null;
  }
}
