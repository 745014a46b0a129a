/**
 * What each writer of the signal storm sends: given by the seed, so that what must be stored is known without asking
 * anybody. A writer sends batch after batch, each until it knows that it is stored; whoever follows a writer that was
 * killed sends the batch once more that it found begun.
 */
import type { SignalToSend } from "../../src/signal/signal.ts";
import { randomOf } from "../reference/random-dag.ts";

/**
 * How its signals come into the log. numbered: by the service, under a client and a number. late: numbered, in a
 * transaction that is old when it sends, and commits late. bound: without a number, in the transaction of a piece of
 * work, with it or not at all. remote: numbered, over gRPC.
 */
export type WriterKind = "numbered" | "late" | "bound" | "remote";

export interface Writer {
  readonly id: string;
  readonly kind: WriterKind;
}

interface Habits {
  /** Signals that it hurries to send; from then on it takes its time. */
  readonly share: number;
  /** In a batch, at most. */
  readonly size: number;
  /** Of its signals, those with a key that everybody uses: such writers wait for each other. */
  readonly hot: number;
  /** Milliseconds between two batches, at most. */
  readonly restMs: number;
}

/** Together more than are asked for: some are held up by more faults than others. */
const HABITS: Readonly<Record<WriterKind, Habits>> = {
  numbered: { share: 15_000, size: 500, hot: 0.25, restMs: 300 },
  late: { share: 2_000, size: 10, hot: 0.02, restMs: 60 },
  bound: { share: 2_000, size: 48, hot: 0.25, restMs: 150 },
  remote: { share: 9_000, size: 450, hot: 0.25, restMs: 300 },
};
const TRICKLE = { size: 6, restMs: 500 };

/** By the process that they live in. */
export const WRITERS = {
  till: writersOf("till", ["numbered", "numbered", "numbered", "late", "late", "late", "bound"]),
  kiosk: writersOf("kiosk", ["numbered", "numbered", "numbered", "late", "late", "late", "bound"]),
  peer: writersOf("peer", ["remote"]),
  stranger: writersOf("stranger", ["remote"]),
} as const satisfies Readonly<Record<string, readonly Writer[]>>;

export type WriterHome = keyof typeof WRITERS;

export const ALL_WRITERS: readonly Writer[] = Object.values(WRITERS).flat();

/** How many are sent at least. */
export const SIGNALS = 100_000;

function writersOf(home: string, kinds: readonly WriterKind[]): Writer[] {
  return kinds.map((kind, at) => ({ id: `${home}-${at}`, kind }));
}

export type Illness = "shaky" | "poison";

/** What the value of every signal says. */
export interface Telling {
  /** Writer, batch, place. */
  readonly id: string;
  /** shaky: whoever listens fails at it twice. poison: always. */
  readonly ill?: Illness;
  /** Its transaction is rolled back. */
  readonly never?: true;
}

export type PlannedSignal = SignalToSend & { readonly namespace: string; readonly value: Telling & object };

/** Who wrote it, batch by batch: more than a batch can have. */
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

  /** The batch with this number; `sent`: how many signals went before it. */
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

  /** How long to rest after it. */
  restMs({ id, kind }: Writer, number: number, sent: number): number {
    const { restMs, share } = HABITS[kind];
    return this.#random(id, -1 - number).below(sent < share * this.#scale ? restMs : TRICKLE.restMs);
  }

  #random(id: string, number: number) {
    const writer = ALL_WRITERS.findIndex((each) => each.id === id);
    return randomOf(Math.imul(this.#seed + 1, 0x9e3779b1) ^ Math.imul(number * 64 + writer, 0x85ebca6b));
  }
}
