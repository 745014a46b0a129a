/**
 * The signals of each writer in the signal storm: determined by the seed, so that the expected signals are known. A writer
 * sends batch after batch, each until it is confirmed; the successor of a killed writer repeats the batch that had begun.
 */
import type { SignalToSend } from "../../src/signal/signal.ts";
import { randomOf } from "../reference/random-dag.ts";

/**
 * How its signals are stored. numbered: by the service, under a client and a number. late: numbered, in a transaction that
 * is old when it sends, and commits late. bound: without a number, in the transaction of a piece of work, with it or not at
 * all. remote: numbered, over gRPC.
 */
export type WriterKind = "numbered" | "late" | "bound" | "remote";

export interface Writer {
  readonly id: string;
  readonly kind: WriterKind;
}

interface Habits {
  /** Signals that it sends at full speed; after that it slows down. */
  readonly share: number;
  /** Maximum size of a batch. */
  readonly size: number;
  /** Share of its signals with a key that all writers use: such writers wait for each other. */
  readonly hot: number;
  /** Maximum pause between two batches, in milliseconds. */
  readonly restMs: number;
}

/** Together more than required: some are delayed by more faults than others. */
const HABITS: Readonly<Record<WriterKind, Habits>> = {
  numbered: { share: 15_000, size: 500, hot: 0.25, restMs: 300 },
  late: { share: 2_000, size: 10, hot: 0.02, restMs: 60 },
  bound: { share: 2_000, size: 48, hot: 0.25, restMs: 150 },
  remote: { share: 9_000, size: 450, hot: 0.25, restMs: 300 },
};
const TRICKLE = { size: 6, restMs: 500 };

/** By process. */
export const WRITERS = {
  till: writersOf("till", ["numbered", "numbered", "numbered", "late", "late", "late", "bound"]),
  kiosk: writersOf("kiosk", ["numbered", "numbered", "numbered", "late", "late", "late", "bound"]),
  peer: writersOf("peer", ["remote"]),
  stranger: writersOf("stranger", ["remote"]),
} as const satisfies Readonly<Record<string, readonly Writer[]>>;

export type WriterHome = keyof typeof WRITERS;

export const ALL_WRITERS: readonly Writer[] = Object.values(WRITERS).flat();

/** The minimum number of signals. */
export const SIGNALS = 100_000;

function writersOf(home: string, kinds: readonly WriterKind[]): Writer[] {
  return kinds.map((kind, at) => ({ id: `${home}-${at}`, kind }));
}

export type Illness = "shaky" | "poison";

/** The value of every signal. */
export interface Telling {
  /** Writer, batch, place. */
  readonly id: string;
  /** shaky: listeners fail on it twice. poison: always. */
  readonly ill?: Illness;
  /** Its transaction is rolled back. */
  readonly never?: true;
}

export type PlannedSignal = SignalToSend & { readonly namespace: string; readonly value: Telling & object };

/** Signal numbers reserved per batch: more than a batch can have. */
const NUMBERS_PER_BATCH = 1_000;
const HOT_KEYS = 4;
const KEYS = 150;
const ILL = 1 / 4_000;

export class Plan {
  readonly #seed: number;
  readonly #scale: number;

  constructor(seed: number, scale: number) {
    this.#seed = seed;
    this.#scale = scale;
  }

  /** The batch with this number; `sent`: the number of signals before it. */
  batch({ id, kind }: Writer, number: number, sent: number): readonly PlannedSignal[] {
    const random = this.#random(id, number);
    const { hot, share, size } = HABITS[kind];
    const count = 1 + random.below(sent < share * this.#scale ? size : TRICKLE.size);
    return Array.from({ length: count }, (_, at) => {
      const isHot = random.chance(hot);
      const sick = random.below(Math.round(1 / ILL));
      const ill: Illness | undefined = sick === 0 ? "shaky" : sick === 1 ? "poison" : undefined;
      return {
        namespace: isHot || random.chance(0.5) ? "default" : "shop",
        key: isHot ? `hot.${random.below(HOT_KEYS)}` : `k.${random.below(KEYS)}`,
        value: { id: `${id}/${number}/${at}`, ...(ill ? { ill } : {}) },
        sender: kind,
        ...(kind === "bound" ? {} : { client: id, sequence: number * NUMBERS_PER_BATCH + at }),
      };
    });
  }

  /** The pause after the batch. */
  restMs({ id, kind }: Writer, number: number, sent: number): number {
    const { restMs, share } = HABITS[kind];
    return this.#random(id, -1 - number).below(sent < share * this.#scale ? restMs : TRICKLE.restMs);
  }

  #random(id: string, number: number) {
    const writer = ALL_WRITERS.findIndex((each) => each.id === id);
    return randomOf(Math.imul(this.#seed + 1, 0x9e3779b1) ^ Math.imul(number * 64 + writer, 0x85ebca6b));
  }
}
