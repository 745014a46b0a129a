/** Several writers that send in bursts, and manual start, restart and stop commands, during the storm. */
import { setTimeout as sleep } from "node:timers/promises";
import { type OrderAction, submitManualCommand } from "../../src/store/drive/manual-commands.ts";
import { sendSignals } from "../../src/store/signal/signals.ts";
import { type Random, randomOf } from "../reference/random-dag.ts";
import type { FaultInstallation } from "./installation.ts";

/** Each start of a task takes time: a run can complete about this many. */
const MAX_TICKS = 240;

export class DrivenLoad {
  readonly #installation: FaultInstallation;
  readonly #flows: readonly string[];
  readonly #loops: Promise<void>[];
  #isOver = false;
  #ticks = 0;

  /** @param flows The runs that receive commands. */
  constructor(installation: FaultInstallation, flows: readonly string[], seed: number) {
    this.#installation = installation;
    this.#flows = flows;
    this.#loops = [
      ...[1, 2, 3].map((writer) => this.#write(`writer ${writer}`, randomOf(seed + writer))),
      this.#command(randomOf(seed + 4)),
    ];
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#loops);
  }

  async send(client: string, sequence: number, keys: readonly string[]): Promise<void> {
    const drafts = keys.map((key) => ({ namespace: "default", key, value: null, sender: "storm" }));
    const { db } = this.#installation;
    await this.#installation.persist(() => sendSignals(db, drafts, { client: { id: client, sequence } }));
    await this.#installation.sql("SELECT pg_notify('tradewind', 'signals test')");
  }

  async #write(client: string, random: Random): Promise<void> {
    for (let sequence = 1; !this.#isOver; ) {
      const burst = Array.from({ length: 1 + random.below(120) }, () => this.#key(random));
      await this.send(client, sequence, burst);
      sequence += burst.length;
      await sleep(random.below(500));
    }
  }

  #key(random: Random): string {
    if (random.chance(0.04) && this.#ticks < MAX_TICKS) {
      this.#ticks++;
      return "tick";
    }
    if (random.chance(0.01)) return "tock";
    if (random.chance(0.005)) return random.one(["go", "halt", "renew"]);
    return random.chance(0.5) ? "bulk" : "unknown";
  }

  /** Stored again if the outcome is unknown: a duplicate command is harmless here. */
  async #command(random: Random): Promise<void> {
    const { db } = this.#installation;
    while (!this.#isOver) {
      const action = random.one<OrderAction>(["start", "restart", "restart", "stop"]);
      const order = { dagId: "sturdy_flow", runId: random.one(this.#flows), user: "Ann" };
      const taskId = random.one(["flow", "chore"]);
      await this.#installation.persist(() =>
        db.transaction((tx) => submitManualCommand(tx, { ...order, taskId, action })),
      );
      await sleep(300 + random.below(500));
    }
  }
}
