/**
 * The cost of NOTIFY: it takes a lock of the whole server at commit, so it is sent separately and rarely. The same load
 * with it and without, in turn, with a listener in another process; ratios of neighbours, since the machine's speed
 * varies from minute to minute.
 */
import type { Figure } from "../../result.ts";
import { digits, median, quantile } from "../../statistics.ts";
import { type ParticipantProcess, startParticipant } from "../participant-process.ts";
import type { Stage } from "../stage.ts";
import { all, flood } from "./throughput.ts";

const PAIRS = 8;
const SENDERS = 2;

export async function notifyCost(stage: Stage, options: { readonly quick: boolean }): Promise<Figure[]> {
  const signals = options.quick ? 4_000 : 20_000;
  const pairs = options.quick ? 2 : PAIRS;
  const sides = {
    on: await openSide(stage, true),
    off: await openSide(stage, false),
  };
  try {
    const rates = { on: [] as number[], off: [] as number[] };
    for (let pair = 0; pair <= pairs; pair++) {
      // The first of a pair has the emptier table: they alternate.
      for (const name of pair % 2 === 0 ? (["on", "off"] as const) : (["off", "on"] as const)) {
        const rate = await rateOf(stage, sides[name], signals);
        if (pair > 0) rates[name].push(rate);
      }
    }
    const ratios = rates.on.map((on, at) => (100 * on) / (rates.off[at] ?? Number.NaN));
    return [
      {
        scenario: "d",
        what: "signals sent and delivered with NOTIFY, of those without",
        value: median(ratios),
        unit: "%",
        bar: { atLeast: 90 },
        note: `median of ${ratios.length} pairs by turns, ${digits(quantile(ratios, 0))} to ${digits(quantile(ratios, 1))} %; ${digits(median(rates.on))} against ${digits(median(rates.off))} /s, writers in ${SENDERS} processes, a listener in another`,
      },
    ];
  } finally {
    for (const { listener, senders } of Object.values(sides))
      await Promise.all([listener, ...senders].map((each) => each.stop()));
  }
}

interface Side {
  readonly senders: readonly ParticipantProcess[];
  readonly listener: ParticipantProcess;
}

async function openSide(stage: Stage, notify: boolean): Promise<Side> {
  const way = notify ? stage.postgres : stage.postgresWithoutNotify;
  return { senders: await all(SENDERS, () => startParticipant(way)), listener: await startParticipant(way) };
}

/** The processes of the other side exist, and are idle. */
async function rateOf(stage: Stage, { listener, senders }: Side, signals: number): Promise<number> {
  await stage.clear();
  await listener.listen({ listeners: 1, key: "*", name: "bench-" });
  await listener.forget();
  const [end, { from }] = await Promise.all([listener.heard(signals), flood(senders, signals)]);
  await listener.unlisten();
  return (1_000 * signals) / (end - from);
}
