/** The listeners of the signal storm, their filters and their effects. */
import { appendFileSync, existsSync, readdirSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Signal, SignalFilter, SignalStart } from "../../src/signal/signal.ts";
import type { ListenOptions, SignalWatcher } from "../../src/signal/signal-service.ts";
import { adhoc, type Connection } from "../../src/store/database/database.ts";
import type { Telling } from "./signal-plan.ts";

export interface StormListener {
  readonly filter: SignalFilter;
  /** The filter for a signal `s` again, in SQL: used by the verdict. */
  readonly wants: string;
  readonly from: SignalStart;
}

export const LISTENERS = {
  ledger: { filter: { namespace: "*" }, wants: "true", from: "start" },
  hot: {
    filter: { key: ["hot.0", "hot.1", "hot.2", "hot.3"] },
    wants: "s.namespace = 'default' AND left(s.key, 4) = 'hot.'",
    from: "start",
  },
  shop: {
    filter: { namespace: "shop", key: "k.1*" },
    wants: "s.namespace = 'shop' AND left(s.key, 3) = 'k.1'",
    from: "start",
  },
  latecomers: { filter: { namespace: "*", sender: "late" }, wants: "s.sender = 'late'", from: "start" },
  // Starts in the middle of the storm.
  newcomer: {
    filter: { namespace: "*", key: ["*7", "hot.2"] },
    wants: "right(s.key, 1) = '7' OR s.key = 'hot.2'",
    from: "now",
  },
  // Over gRPC: no transaction spans its effect and its position.
  remote: {
    filter: { key: "k.*" },
    wants: "s.namespace = 'default' AND left(s.key, 2) = 'k.'",
    from: "start",
  },
} as const satisfies Readonly<Record<string, StormListener>>;

export type ListenerName = keyof typeof LISTENERS;

/** Milliseconds. */
export const LEASE_MS = 1_000;
export const ATTEMPTS = 4;

export const LISTEN_OPTIONS: ListenOptions = {
  batch: 500,
  attempts: ATTEMPTS,
  backoffMs: 100,
  leaseMs: LEASE_MS,
};

/** Failures of a shaky signal that is delivered alone; fewer than cause a dead letter. */
const SHAKES = 2;

const EFFECT = adhoc(`
  INSERT INTO effect (listener, signal_id, namespace, key, by)
  SELECT $1, s.id, s.namespace, s.key, $5 FROM unnest($2::bigint[], $3::text[], $4::text[])
    WITH ORDINALITY AS s(id, namespace, key, place)
  ORDER BY s.place ON CONFLICT DO NOTHING`);

export class StormWatcher implements SignalWatcher {
  readonly #name: ListenerName;
  readonly #folder: string;
  readonly #other: Connection | null;

  /** @param other Stores the effect if there is no transaction; made idempotent. */
  constructor(name: ListenerName, folder: string, other: Connection | null = null) {
    this.#name = name;
    this.#folder = folder;
    this.#other = other;
  }

  async process(signals: readonly Signal[], tx: Connection | null): Promise<void> {
    if (tx === null) this.#fallIll(signals);
    await (tx ?? this.#other)!.rows(EFFECT, [
      this.#name,
      signals.map(({ version }) => version),
      signals.map(({ namespace }) => namespace),
      signals.map(({ key }) => key),
      process.pid,
    ]);
    if (tx === null) return;
    await holdStill(this.#folder, this.#name);
    // After the effect: the effect must be rolled back with its transaction.
    this.#fallIll(signals);
  }

  #fallIll(signals: readonly Signal[]): void {
    for (const { value } of signals) {
      const { id, ill } = value as unknown as Telling;
      if (ill === "poison" && !existsSync(cureFile(this.#folder))) throw new Error(`${id} is poison`);
      if (ill === "shaky" && this.#shakes(id, signals.length === 1)) throw new Error(`${id} is shaky`);
    }
  }

  /** Counted by all listeners of this name, and only if the signal is delivered alone: then it caused the failure. */
  #shakes(id: string, isAlone: boolean): boolean {
    const file = join(this.#folder, `${this.#name} ${id.replaceAll("/", " ")}`);
    const shakes = existsSync(file) ? statSync(file).size : 0;
    if (shakes >= SHAKES) return false;
    if (isAlone) appendFileSync(file, ".");
    return true;
  }
}

export function cureFile(folder: string): string {
  return join(folder, "cured");
}

/** While this file exists, a process that reaches an effect stops in the middle of it, and renames the file to report it. */
export function holdFile(folder: string): string {
  return join(folder, "hold");
}

export interface Held {
  readonly pid: number;
  readonly name: ListenerName;
}

export function heldFile(folder: string, { name, pid }: Held): string {
  return join(folder, `held ${pid} ${name}`);
}

export function whoIsHeld(folder: string): Held | undefined {
  for (const file of readdirSync(folder)) {
    const [, pid, name] = /^held (\d+) (\w+)$/.exec(file) ?? [];
    if (name !== undefined) return { pid: Number(pid), name: name as ListenerName };
  }
  return undefined;
}

async function holdStill(folder: string, name: ListenerName): Promise<void> {
  if (!existsSync(holdFile(folder))) return;
  const held = heldFile(folder, { pid: process.pid, name });
  try {
    renameSync(holdFile(folder), held);
  } catch {
    // Another process was first.
    return;
  }
  while (existsSync(held)) await sleep(10);
}
