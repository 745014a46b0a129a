/**
 * Signals per second, sent and delivered. Writers send one signal at a time and wait until it is stored; the client
 * batches them into shared commits. Listeners, in a separate process, have names: their positions are stored in
 * transactions, as their effects would be.
 */
import type { Figure } from "../../result.ts";
import { digits, median, quantile } from "../../statistics.ts";
import { type ParticipantProcess, startParticipant } from "../participant-process.ts";
import type { Stage } from "../stage.ts";

const WRITERS = 500;
const ROUNDS = 5;
const BAR = { atLeast: 10_000 };

export async function throughput(stage: Stage, options: { readonly quick: boolean }): Promise<Figure[]> {
  const signals = options.quick ? 5_000 : 30_000;
  return [
    ...(await sent(stage, { processes: 1, signals })),
    ...(await sent(stage, { processes: 4, signals })),
    ...(await delivered(stage, { listeners: 1, key: "*", signals })),
    ...(await delivered(stage, { listeners: 100, key: "k#", signals })),
    ...(await delivered(stage, { listeners: 100, key: "*", signals: signals / 2 })),
  ];
}

async function sent(stage: Stage, how: { processes: number; signals: number }): Promise<Figure[]> {
  const senders = await all(how.processes, () => startParticipant(stage.postgres));
  try {
    const rates: number[] = [];
    for (let round = 0; round <= ROUNDS; round++) {
      await stage.clear();
      const { from, to } = await flood(senders, how.signals);
      // The first round prepares statements and compiles the code.
      if (round > 0) rates.push((1_000 * how.signals) / (to - from));
    }
    return [
      {
        scenario: "a",
        what: `signals sent and stored, ${WRITERS} writers in ${how.processes === 1 ? "one process" : `${how.processes} processes`}`,
        value: median(rates),
        unit: "/s",
        bar: BAR,
        note: `${noteOf(rates)}, ${count(how.signals)} signals each, no listeners`,
      },
    ];
  } finally {
    await Promise.all(senders.map((each) => each.stop()));
  }
}

async function delivered(
  stage: Stage,
  how: { listeners: number; key: string; signals: number },
): Promise<Figure[]> {
  const isAll = how.key === "*";
  const sender = await startParticipant(stage.postgres);
  const listener = await startParticipant(stage.postgres);
  try {
    const rates: number[] = [];
    const sentRates: number[] = [];
    for (let round = 0; round <= ROUNDS; round++) {
      await stage.clear();
      await listener.listen({ listeners: how.listeners, key: how.key, name: "bench-" });
      await listener.forget();
      const [end, { from, to }] = await Promise.all([
        listener.heard(isAll ? how.signals * how.listeners : how.signals),
        // As many keys as listeners that have one each.
        flood([sender], how.signals, isAll ? WRITERS : how.listeners),
      ]);
      await listener.unlisten();
      if (round === 0) continue;
      rates.push((1_000 * how.signals) / (end - from));
      sentRates.push((1_000 * how.signals) / (to - from));
    }
    const each =
      how.listeners === 1
        ? "1 listener"
        : `${how.listeners} listeners, each of ${isAll ? "all" : "a key of its own"}`;
    return [
      {
        scenario: "a",
        what: `signals sent and delivered to another process: ${each}`,
        value: median(rates),
        unit: "/s",
        note: `${noteOf(rates)}, ${count(how.signals)} signals each; sent meanwhile ${digits(median(sentRates))} /s${isAll && how.listeners > 1 ? `; ${digits(median(rates) * how.listeners)} deliveries/s` : ""}`,
      },
    ];
  } finally {
    await sender.stop();
    await listener.stop();
  }
}

/** From the first `send` of any of them until the last signal of all is stored. */
export async function flood(
  senders: readonly ParticipantProcess[],
  signals: number,
  writers = WRITERS,
): Promise<{ from: number; to: number }> {
  const portion = { signals: signals / senders.length, writers: writers / senders.length };
  const done = await Promise.all(
    // No two processes share a key: a writer of a key blocks the other writers of that key.
    senders.map((each, at) => each.flood({ ...portion, key: senders.length > 1 ? `p${at}.k#` : "k#" })),
  );
  return {
    from: quantile(
      done.map(({ from }) => from),
      0,
    ),
    to: quantile(
      done.map(({ to }) => to),
      1,
    ),
  };
}

export function all<T>(times: number, make: () => Promise<T>): Promise<T[]> {
  return Promise.all(Array.from({ length: times }, make));
}

function noteOf(rates: readonly number[]): string {
  return `median of ${rates.length}, ${digits(quantile(rates, 0))} to ${digits(quantile(rates, 1))} /s`;
}

function count(signals: number): string {
  return signals.toLocaleString("en-US");
}
