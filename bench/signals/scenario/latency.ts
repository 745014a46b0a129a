/**
 * From the call of `send` to the first line of the watcher, for single signals: at a low rate, when all processes are
 * idle, and at a high rate. Sender and listener in one process, or in two with their own connections.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Bar, Figure } from "../../result.ts";
import { openRig, type Rig } from "../../rig.ts";
import { digits, quantile } from "../../statistics.ts";
import { watchLateness } from "../lateness.ts";
import { type Commands, Participant } from "../participant.ts";
import { startParticipant } from "../participant-process.ts";
import { openService, type Way } from "../service.ts";
import type { Stage } from "../stage.ts";

interface Pace {
  readonly what: string;
  readonly signals: number;
  readonly gapMs: readonly [number, number];
}

const NOW_AND_THEN: Pace = { what: "now and then", signals: 200, gapMs: [5, 195] };
const OFTEN: Pace = { what: "100 a second", signals: 1_000, gapMs: [0, 20] };
const VERY_OFTEN: Pace = { what: "1,000 a second", signals: 3_000, gapMs: [0, 2] };
const WARM_UP: Pace = { what: "", signals: 200, gapMs: [0, 10] };
const SELDOM: Pace = { what: "now and then", signals: 50, gapMs: [200, 400] };
const KEY = "latency";

export async function inOneProcess(stage: Stage, options: { readonly quick: boolean }): Promise<Figure[]> {
  await stage.clear();
  const { close, service } = await openService(stage.postgres);
  try {
    const own = new Participant(service);
    return await measure(
      { sender: own, listener: own },
      { ...options, scenario: "b", what: "in one process" },
    );
  } finally {
    await close();
  }
}

const TWO = "between two processes";

export function betweenProcesses(stage: Stage, { quick }: { readonly quick: boolean }): Promise<Figure[]> {
  return between(stage, stage.postgres, { quick, what: `${TWO}, on PostgreSQL`, bar: { atMost: 50 } });
}

export function withoutNotify(stage: Stage, { quick }: { readonly quick: boolean }): Promise<Figure[]> {
  const what = `${TWO}, on PostgreSQL with NOTIFY off`;
  return between(stage, stage.postgresWithoutNotify, { quick, what });
}

export function toManyListeners(stage: Stage, { quick }: { readonly quick: boolean }): Promise<Figure[]> {
  const what = `${TWO}, the last of 100 listeners`;
  return between(stage, stage.postgres, { quick, what, listeners: 100, paces: [SELDOM] });
}

/** Both ends are clients of a server in a third process. */
export async function overNetwork(
  stage: Stage,
  kind: "grpc" | "http",
  { quick }: { readonly quick: boolean },
): Promise<Figure[]> {
  const { child, way } = await stage.serve(kind);
  try {
    const what = `${TWO}, over ${kind === "grpc" ? "gRPC" : "HTTP, long poll"}`;
    return await child.during(between(stage, way, { quick, what }));
  } finally {
    await child.stop();
  }
}

const BUSY = `import { dag } from "tradewind";

export default dag("busy", (d) => {
  let last = d.task("t0", () => {});
  for (let n = 1; n < 100; n++) last = d.task("t" + n, { after: last }, () => {});
});
`;

/** Each of the scheduler's transactions hides later signals for as long as it is open. */
export async function besideTasks({ quick }: { readonly quick: boolean }): Promise<Figure[]> {
  const rig = await openRig();
  try {
    await rig.publish({ "busy.ts": BUSY });
    await rig.run(["busy"]);
    const busy = keepBusy(rig);
    const way: Way = { kind: "postgres", url: rig.database.url, notify: true };
    const [sender, listener] = [await startParticipant(way), await startParticipant(way)];
    const what = `${TWO}, on PostgreSQL, while a scheduler runs a chain of tasks`;
    try {
      const paces = [NOW_AND_THEN, OFTEN];
      return await measure({ sender, listener }, { quick, scenario: "c", what, paces });
    } finally {
      await busy.stop();
      await sender.stop();
      await listener.stop();
    }
  } finally {
    await rig.stop();
  }
}

function keepBusy(rig: Rig): { stop(): Promise<void> } {
  let isOver = false;
  const work = async () => {
    while (!isOver) await rig.run(["busy"]);
  };
  const done = work();
  return {
    stop: async () => {
      isOver = true;
      await done;
    },
  };
}

interface How {
  readonly quick: boolean;
  readonly scenario: string;
  readonly what: string;
  readonly bar?: Bar;
  readonly listeners?: number;
  readonly paces?: readonly Pace[];
}

async function between(stage: Stage, way: Way, how: Omit<How, "scenario">): Promise<Figure[]> {
  await stage.clear();
  const [sender, listener] = [await startParticipant(way), await startParticipant(way)];
  try {
    return await measure({ sender, listener }, { ...how, scenario: "c" });
  } finally {
    await sender.stop();
    await listener.stop();
  }
}

interface Ends {
  readonly sender: Pick<Commands, "pace">;
  readonly listener: Pick<Commands, "listen" | "unlisten" | "heard" | "forget" | "arrivals">;
}

async function measure(ends: Ends, how: How): Promise<Figure[]> {
  const { listeners = 1, paces = [NOW_AND_THEN, OFTEN, VERY_OFTEN] } = how;
  const figures: Figure[] = [];
  await ends.listener.listen({ listeners, key: KEY, name: "bench-" });
  await latencies(ends, WARM_UP, listeners);
  for (const pace of paces) {
    const signals = how.quick ? pace.signals / 10 : pace.signals;
    await sleep(500);
    const lateness = watchLateness();
    const found = await latencies(ends, { ...pace, signals }, listeners);
    figures.push(figureOf({ found, late: lateness() }, pace, how));
  }
  await ends.listener.unlisten();
  return figures;
}

/** Milliseconds of one signal: until it is known to be stored, and until it is received. */
interface Latency {
  readonly stored: number;
  readonly heard: number;
}

async function latencies(
  { listener, sender }: Ends,
  { gapMs, signals }: Pace,
  listeners: number,
): Promise<Latency[]> {
  await listener.forget();
  const [{ sent, stored }] = await Promise.all([
    sender.pace({ signals, gapMs, key: KEY }),
    listener.heard(signals * listeners),
  ]);
  const [storedAt, heardAt] = [stored, await listener.arrivals()].map(
    (moments) => new Map(moments.map(({ at, id }) => [id, at])),
  );
  return sent.map(({ at, id }) => ({
    stored: (storedAt?.get(id) ?? Number.NaN) - at,
    heard: (heardAt?.get(id) ?? Number.NaN) - at,
  }));
}

function figureOf(
  { found, late }: { readonly found: readonly Latency[]; readonly late: readonly number[] },
  pace: Pace,
  { bar, scenario, what }: How,
): Figure {
  const heard = found.map((each) => each.heard);
  const stored = found.map((each) => each.stored);
  const of = (values: readonly number[], q: number) => digits(quantile(values, q));
  return {
    scenario,
    what: `send to watcher ${what}, ${pace.what}: p99`,
    value: quantile(heard, 0.99),
    unit: "ms",
    ...(bar ? { bar } : {}),
    note: `p50 ${of(heard, 0.5)}, p90 ${of(heard, 0.9)}, longest ${of(heard, 1)} ms of ${found.length}; stored after ${of(stored, 0.5)} (p50), ${of(stored, 0.99)} ms (p99); timers were ${of(late, 0.5)} (p50), ${of(late, 0.99)} ms (p99) late`,
  };
}
