/**
 * The same shapes on Tradewind and its peers, in turn: every round runs each of them once, so that other work on the
 * machine affects all alike. Only the ratios are meaningful.
 */
import { fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { type Child, showOutput, watchChild } from "../child.ts";
import type { Options, PeerName } from "../options.ts";
import type { Rig } from "../rig.ts";
import { CHAIN, FAN, INDEPENDENT } from "../scenario/shape.ts";
import { digits, median } from "../statistics.ts";
import { table } from "../table.ts";
import type { HostReply, HostRequest } from "./host.ts";
import { installPeers } from "./install.ts";

export interface PeerReport {
  readonly engines: readonly EngineReport[];
  /** Peers that were not measured, and why. */
  readonly left: readonly string[];
}

interface EngineReport {
  readonly name: string;
  readonly note: string;
  /** Milliseconds per task, median; by the scenario's letter. */
  readonly msPerTask: Readonly<Record<string, number>>;
}

const PACKAGES: Readonly<Record<PeerName, string>> = {
  "graphile-worker": "graphile-worker",
  "pg-boss": "pg-boss",
  dbos: "@dbos-inc/dbos-sdk",
  openworkflow: "openworkflow",
  bullmq: "bullmq",
};
const SHAPES = [CHAIN, FAN, INDEPENDENT];
const HOST = fileURLToPath(new URL("./host.ts", import.meta.url));

export async function comparePeers(
  rig: Rig,
  options: Options,
  say: (text: string) => void,
): Promise<PeerReport> {
  say("(peers) installing ...");
  const versions = await installPeers();
  const left: string[] = [];
  const hosts: Host[] = [];
  try {
    for (const peer of options.peers) {
      const name = `${PACKAGES[peer]} ${versions[PACKAGES[peer]]}`;
      const leave = (why: string) => {
        say(`(peers) not measured: ${name}: ${why}`);
        left.push(`${name}: ${why}`);
      };
      if (peer === "bullmq" && spawnSync("redis-server", ["--version"]).error) {
        leave("there is no redis-server on PATH (on Debian: apt-get install redis-server)");
        continue;
      }
      const host = await Host.start(peer, name).catch((error: Error) => leave(error.message));
      if (host) hosts.push(host);
    }
    const measured = await inTurn([new Tradewind(rig), ...hosts], options, { say, left });
    const reports = measured.map(({ engine: { name, note }, times }): EngineReport => {
      const series = [...times].map(([key, values]) => [key, median(values)] as const);
      return { name, note, msPerTask: Object.fromEntries(series) };
    });
    return { engines: reports, left };
  } finally {
    await Promise.all(hosts.map((host) => host.stop()));
  }
}

interface Engine {
  readonly name: string;
  readonly note: string;
  run(key: "a" | "b" | "d"): Promise<{ ms: number; tasks: number }>;
}

/** A peer that fails is left out from then on; the others continue. */
async function inTurn(
  engines: readonly Engine[],
  options: Options,
  { say, left }: { say: (text: string) => void; left: string[] },
): Promise<{ engine: Engine; times: Map<string, number[]> }[]> {
  const series = engines.map((engine) => ({ engine, times: new Map<string, number[]>(), failed: false }));
  for (const shape of SHAPES) {
    if (!options.only.has(shape.key)) continue;
    const rounds = shape === INDEPENDENT ? Math.min(3, options.repeat) : options.repeat;
    // The first round warms up.
    for (let round = 0; round <= rounds; round++) {
      for (const each of series.filter(({ failed }) => !failed)) {
        say(`(peers) ${shape.what}, round ${round} of ${rounds}: ${each.engine.name}`);
        try {
          const { ms, tasks } = await each.engine.run(shape.key as "a" | "b" | "d");
          if (round === 0) each.times.set(shape.key, []);
          else each.times.get(shape.key)?.push(ms / tasks);
        } catch (error) {
          each.failed = true;
          each.times.delete(shape.key);
          left.push(
            `${each.engine.name}, ${shape.what}: ${error instanceof Error ? error.message : String(error)}`,
          );
        }
      }
    }
  }
  return series;
}

export function peerTable({ engines, left }: PeerReport): string {
  const own = engines[0]?.msPerTask ?? {};
  const cell = (engine: EngineReport, key: string, text: (ms: number) => string) => {
    const ms = engine.msPerTask[key];
    if (ms === undefined) return ["", ""];
    return [text(ms), `${digits(ms / (own[key] ?? Number.NaN))} x`];
  };
  const rows = engines.map((engine) => [
    engine.name,
    ...cell(engine, "a", (ms) => `${digits(ms)} ms`),
    ...cell(engine, "b", (ms) => `${digits((ms * FAN.tasks) / 1_000)} s`),
    ...cell(engine, "d", (ms) => `${digits(1_000 / ms)} /s`),
  ]);
  const head = ["engine", "chain, per task", "time", "fan 1,000", "time", "independent", "time"];
  return [
    "Tradewind and its peers, measured in turn (x: time against Tradewind, above 1 is slower).",
    "The peers run user code in their own process; Tradewind runs it in child processes.",
    "",
    table(head, rows, new Set([1, 2, 3, 4, 5, 6])),
    "",
    ...engines.map(({ name, note }) => `${name}: ${note}`),
    ...left.map((text) => `not measured: ${text}`),
  ].join("\n");
}

class Tradewind implements Engine {
  readonly name = "tradewind";
  readonly note = "each task in a warm child process; parallelism and pool as they come";
  readonly #rig: Rig;

  constructor(rig: Rig) {
    this.#rig = rig;
  }

  async run(key: "a" | "b" | "d"): Promise<{ ms: number; tasks: number }> {
    const shape = SHAPES.find((each) => each.key === key) ?? CHAIN;
    return { ms: (await this.#rig.run(shape.dagIds)).ms, tasks: shape.tasks };
  }
}

class Host implements Engine {
  readonly name: string;
  readonly note: string;
  readonly #child: Child;

  static async start(file: string, name: string): Promise<Host> {
    const host = fork(HOST, [file], {
      execArgv: ["--conditions=source"],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    const child = watchChild(`the process of ${name}`, host, () => request(child, { stop: true }));
    showOutput(child);
    try {
      const reply = await answer(child);
      if (!("ready" in reply)) throw new Error("it did not start");
      return new Host(child, name, reply.ready.note);
    } catch (error) {
      host.kill("SIGKILL");
      throw error;
    }
  }

  private constructor(child: Child, name: string, note: string) {
    this.#child = child;
    this.name = name;
    this.note = note;
  }

  async run(shape: "a" | "b" | "d"): Promise<{ ms: number; tasks: number }> {
    const reply = answer(this.#child);
    request(this.#child, { shape });
    const done = await reply;
    if (!("ms" in done)) throw new Error(`${this.name} gave no time`);
    return done;
  }

  stop(): Promise<void> {
    return this.#child.stop();
  }
}

function request(child: Child, message: HostRequest): void {
  // Without a callback, a closed pipe would be an uncaught error instead of the child's.
  child.process.send(message, () => {});
}

/** The child's next message. @throws if it reports an error or ends without one. */
async function answer(child: Child): Promise<HostReply> {
  const [reply] = (await child.during(once(child.process, "message"))) as [HostReply];
  if ("error" in reply) throw new Error(reply.error);
  return reply;
}
