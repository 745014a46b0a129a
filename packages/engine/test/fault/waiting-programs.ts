/** Seeded random DAGs of tasks with every kind of wait. */
import { type Random, randomOf } from "../reference/random-dag.ts";
import type { WaitingDag, WaitingTask, WaitScript } from "./waiting-dag.ts";

/** Small pools, so that admission is contended; in the second one a waiting task keeps its slots. */
export const WAITING_POOLS: Readonly<Record<string, number>> = { narrow: 2 };
export const KEPT_POOLS: Readonly<Record<string, number>> = { kept: 2 };

/** Opened one after the other during the test; all tasks that begin with a wait for the same gate share it. */
export const PHASES = ["phase_0", "phase_1", "phase_2", "phase_3", "phase_4", "phase_5"];

const DELAYS = [0, 0, 1, 5, 20, 90, 400];
const RUN_GATES = ["$a", "$b"];

export function waitingDags(seed: number, count: number, gates: string): WaitingDag[] {
  return Array.from({ length: count }, (_, n) => {
    const random = randomOf(seed * 1_000 + n);
    return { id: `waits_${n}`, gates, tasks: tasks(random) };
  });
}

/** A DAG whose task blocks the process of all triggers. */
export function busyDag(gates: string): WaitingDag {
  return { id: "busy", gates, tasks: [{ ...task("busy", "operator"), tries: [[{ kind: "busy" }]] }] };
}

/** One run for each letter, and each run waits as well. */
export function mailDags(gates: string, folders: { letters: string; notices: string }): WaitingDag[] {
  const read = { ...task("read", "function"), tries: [[{ kind: "delta", ms: 0 } as const]] };
  const seen = { ...task("seen", "node"), tries: [[{ kind: "delta", ms: 1 } as const]] };
  return [
    { id: "letters", gates, tasks: [read], mail: { kind: "letters", folder: folders.letters } },
    { id: "notices", gates, tasks: [seen], mail: { kind: "notices", folder: folders.notices } },
  ];
}

function task(id: string, kind: WaitingTask["kind"]): Omit<WaitingTask, "tries"> {
  return { id, kind, options: {}, workMs: 0 };
}

function tasks(random: Random): WaitingTask[] {
  const worker = () => random.one(["operator", "function"] as const);
  const some = (id: string, kind: WaitingTask["kind"], ...waits: WaitScript[]): WaitingTask => ({
    ...task(id, kind),
    tries: [waits],
  });
  const retried = (id: string, first: WaitScript): WaitingTask => ({
    ...task(id, worker()),
    options: { retries: 1, retryDelay: 20 + random.below(200) },
    tries: [[plain(random), first], [plain(random)]],
  });
  const delta = () => ({ kind: "delta", ms: random.one(DELAYS) }) as const;
  const phase = () => ({ kind: "gate", gate: random.one(PHASES) }) as const;
  return [
    ...["chain_0", "chain_1", "chain_2"].map((id, n) => ({
      ...some(id, n === 0 ? "operator" : n === 1 ? "function" : worker(), ...chain(random)),
      options: random.chance(0.3) ? { pool: "narrow" } : {},
      // A target for faults.
      workMs: random.below(200),
    })),
    some("node_0", "node", delta()),
    some("node_1", "node", delta()),
    some("node_2", "node", delta()),
    some("node_gate", "node", phase()),
    some("node_twin", "node", { kind: "twin", gate: random.one(PHASES) }),
    some("start_delta", "start", delta(), plain(random)),
    some("start_gate", "start", phase(), delta()),
    some("ends", worker(), plain(random), ending(random, random.one(["success", "skip", "fatal"] as const))),
    retried("again", ending(random, "fail")),
    some("starved", worker(), {
      kind: "starve",
      timeoutMs: 50 + random.below(300),
      onTimeout: random.one(["skip", "fatal"] as const),
    }),
    { ...retried("starved_again", { kind: "starve", timeoutMs: 100, onTimeout: "fail" }), kind: "operator" },
    some("race_0", "operator", race(random)),
    some("race_1", "function", race(random), race(random)),
    { ...some("kept", "operator", delta()), options: { pool: "kept" } },
  ];
}

function chain(random: Random): WaitScript[] {
  return Array.from({ length: 2 + random.below(3) }, () => plain(random));
}

/** A wait that ends with an event. */
function plain(random: Random): WaitScript {
  const gate = random.one(RUN_GATES);
  const delta = { kind: "delta", ms: random.one(DELAYS) } as const;
  return random.one<WaitScript>([
    delta,
    delta,
    { kind: "gate", gate },
    { kind: "gate", gate },
    { kind: "twin", gate },
    { kind: "cold", gate },
    { kind: "joint", gate, ms: random.below(100) },
    { kind: "moment" },
  ]);
}

function ending(random: Random, how: "success" | "skip" | "fail" | "fatal"): WaitScript {
  return { kind: "ending", gate: random.one(RUN_GATES), how };
}

/** The event counts from when the wait is stored, the timeout from a little earlier. */
function race(random: Random): WaitScript {
  const ms = 30 + random.below(150);
  return { kind: "race", ms, timeoutMs: ms + random.below(60) };
}
