/**
 * Wake-ups between processes. A wake-up carries a topic and no truth: the receiver looks at the database, and would
 * have looked a little later anyway, so a lost one costs only time. NOTIFY takes a global lock at commit; so topics
 * are gathered and sent in a transaction of their own, at most one every `intervalMs`.
 */
import { randomBytes } from "node:crypto";
import type { Database, Listening } from "../store/database.ts";
import { sendWakeUps } from "../store/wake-up.ts";

const CHANNEL = "tradewind";

/** "runs": queued runs to start; "dags": a DAG changed; "pools": slots freed or resized; "run:<id>": that run was edited; "ended": a run ended; "tasks": tasks ended (told only here); "jobs": a scheduler or triggerer came; "triggers": there are new ones, or some are no longer waited for; "fired": a trigger fired; "signals": there are new ones. */
export type Topic =
  | "runs"
  | "dags"
  | "pools"
  | "ended"
  | "tasks"
  | "jobs"
  | "triggers"
  | "fired"
  | "signals"
  | `run:${number}`;

export class WakeUps {
  readonly #database: Database;
  readonly #intervalMs: number;
  readonly #enabled: boolean;
  /** Marks our own wake-ups, which PostgreSQL sends back to us as well. */
  readonly #origin = randomBytes(6).toString("hex");
  readonly #local = new Set<(topic: Topic) => void>();
  #pending = new Set<Topic>();
  #timer: NodeJS.Timeout | null = null;
  #lastSent = 0;
  #closed = false;

  constructor(database: Database, options: { intervalMs?: number; enabled?: boolean } = {}) {
    this.#database = database;
    this.#intervalMs = options.intervalMs ?? 50;
    this.#enabled = options.enabled ?? true;
  }

  /** Listeners in this process hear at once, without the database. */
  onLocal(listener: (topic: Topic) => void): () => void {
    this.#local.add(listener);
    return () => this.#local.delete(listener);
  }

  send(topic: Topic): void {
    this.tellHere(topic);
    this.tellOthers(topic);
  }

  /** For news that come too often to be sent around; others look for themselves, a little later. */
  tellHere(topic: Topic): void {
    for (const listener of this.#local) listener(topic);
  }

  /** For news that this process has no use for itself. */
  tellOthers(topic: Topic): void {
    if (!this.#enabled || this.#closed) return;
    this.#pending.add(topic);
    if (this.#timer) return;
    const wait = Math.max(0, this.#lastSent + this.#intervalMs - performance.now());
    this.#timer = setTimeout(() => void this.#flush(), wait);
  }

  /** Topics sent by other processes. "" after a reconnect: anything may have happened. */
  async listen(onTopic: (topic: Topic | "") => void): Promise<Listening> {
    if (!this.#enabled) return { isUp: false, close: async () => {} };
    return this.#database.listen(CHANNEL, (payload) => {
      const [topic, origin] = payload.split(" ");
      if (origin !== this.#origin) onTopic((topic ?? "") as Topic | "");
    });
  }

  close(): void {
    this.#closed = true;
    if (this.#timer) clearTimeout(this.#timer);
  }

  async #flush(): Promise<void> {
    const topics = [...this.#pending].map((topic) => `${topic} ${this.#origin}`);
    this.#pending = new Set();
    this.#timer = null;
    this.#lastSent = performance.now();
    // A failed send is a lost wake-up: every receiver also looks on its own.
    await sendWakeUps(this.#database, CHANNEL, topics).catch(() => {});
  }
}
