/** The external events during the faults: runs are created, gates open, letters arrive. */
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Random, randomOf } from "../reference/random-dag.ts";
import type { FaultInstallation } from "./installation.ts";
import { gateName } from "./waiting-dag.ts";
import { PHASES } from "./waiting-programs.ts";

/** Files that triggers wait for. */
export class Gates {
  readonly folder: string;
  /** When each gate was opened, recorded before it can be seen. */
  readonly opened = new Map<string, number>();

  constructor(root: string) {
    this.folder = join(root, "gates");
    mkdirSync(this.folder, { recursive: true });
  }

  open(gate: string): void {
    if (this.opened.has(gate)) return;
    this.opened.set(gate, Date.now());
    writeFileSync(join(this.folder, gate), "");
  }
}

/** A folder of letters; each is written atomically. */
export class Mailbox {
  readonly folder: string;
  readonly #desk: string;
  readonly posted: string[] = [];

  constructor(root: string, name: string) {
    this.folder = join(root, name);
    this.#desk = join(root, `${name}.desk`);
    mkdirSync(this.folder, { recursive: true });
    mkdirSync(this.#desk, { recursive: true });
  }

  post(): void {
    const letter = `letter_${this.posted.length}`;
    this.posted.push(letter);
    writeFileSync(join(this.#desk, letter), "");
    renameSync(join(this.#desk, letter), join(this.folder, letter));
  }
}

export interface LoadParts {
  readonly installation: FaultInstallation;
  readonly gates: Gates;
  readonly mailboxes: readonly Mailbox[];
  readonly dagIds: readonly string[];
}

const GROUP = 6;
const EVERY_MS = 400;
const PHASE_MS = 5_000;
/** On a slow machine the backlog must not grow without bounds. */
const MAX_OPEN = 50;

export class WaitingLoad {
  readonly #parts: LoadParts;
  readonly #random: Random;
  readonly #loops: Promise<unknown>;
  readonly #over = new AbortController();
  #busy = 0;

  constructor(parts: LoadParts, seed: number) {
    this.#parts = parts;
    this.#random = randomOf(seed);
    this.#loops = Promise.all([this.#makeRuns(), this.#post(), this.#openPhases()]);
    this.#loops.catch(() => {});
  }

  /** A task whose trigger blocks the process it runs in. */
  async blockATriggerer(): Promise<void> {
    await this.#parts.installation.trigger("busy", `busy_${this.#busy++}`);
  }

  post(): void {
    for (const mailbox of this.#parts.mailboxes) mailbox.post();
  }

  /** No new runs; every gate is open in the end. */
  async stop(): Promise<void> {
    this.#over.abort();
    await this.#loops;
  }

  async #makeRuns(): Promise<void> {
    const { installation, dagIds } = this.#parts;
    const openings: Promise<void>[] = [];
    for (let n = 0; !this.#over.signal.aborted; n++) {
      const group = `g${Math.floor(n / GROUP)}`;
      const moment = new Date(Math.ceil((Date.now() + 700) / 500) * 500).toISOString();
      await installation.trigger(this.#random.one(dagIds), `run_${n}`, { group, moment });
      if (n % GROUP === 0) openings.push(this.#openGroup(group));
      await this.#pause(EVERY_MS);
      await this.#notTooMany();
    }
    await Promise.all(openings);
  }

  async #openGroup(group: string): Promise<void> {
    for (const gate of this.#random.shuffled(["$a", "$b"])) {
      await this.#pause(200 + this.#random.below(2_500));
      this.#parts.gates.open(gateName(gate, group));
    }
  }

  async #openPhases(): Promise<void> {
    for (const phase of PHASES) {
      await this.#pause(PHASE_MS);
      this.#parts.gates.open(phase);
    }
  }

  async #post(): Promise<void> {
    while (!this.#over.signal.aborted) {
      this.post();
      await this.#pause(300 + this.#random.below(400));
    }
  }

  async #notTooMany(): Promise<void> {
    const open = "SELECT count(*) AS n FROM dag_run WHERE state IN ('queued', 'running')";
    for (;;) {
      const [row] = await this.#parts.installation.sql<{ n: number }>(open);
      if (this.#over.signal.aborted || (row?.n ?? 0) < MAX_OPEN) return;
      await this.#pause(100);
    }
  }

  async #pause(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#over.signal }).catch(() => {});
  }
}
