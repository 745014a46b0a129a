/**
 * Wake-ups between processes. A wake-up carries a topic and no truth: the receiver looks at the database, and would
 * have looked a little later anyway, so a lost one costs only time. NOTIFY takes a global lock at commit; so topics
 * are sent in transactions of their own, together where they are due together. News are told at once; the same topic
 * again `intervalMs` later at the earliest, without holding up another that has not been told for longer.
 *
 * "states" could be sent at every step of every task. They are sent only while some other process asks for them, which it
 * repeats. The first request after a time without any is answered with "states": what happened before it arrived was not
 * sent. A process that begins to listen sends them until it would have received a request.
 */
import { randomBytes } from "node:crypto";
import type { Database, Listening } from "../store/database/database.ts";
import { sendWakeUps } from "../store/database/wake-up.ts";

const CHANNEL = "tradewind";
/** Between two transactions, however many topics there are: of "run:<id>" there are as many as runs. */
const GAP_MS = 5;
/** Who wants states asks that often; one who has not been asked for three times as long tells none. */
const ASK_MS = 5_000;
const ASK = "ask-states";

/** "runs": queued runs to start; "notices": runs that have deadlines were created or started, or deliveries stored; "dags": a DAG changed; "pools": slots freed or resized; "run:<id>": that run was edited; "ended": a run ended, or tasks that the next date may wait for; "tasks": tasks ended (told only here); "jobs": a component came or ended; "triggers": there are new ones; "unwaited": waits ended without their triggers, or tries without their sub-DAGs; "callbacks": there are some that no job has; "fired": a trigger fired; "signals": there are new ones; "states": there are new ones of the engine's own; "backfills": one was made, changed or left; "slots": a scheduler has free slots; "handed": it handed runs to another. */
export type Topic =
  | "runs"
  | "notices"
  | "dags"
  | "pools"
  | "ended"
  | "tasks"
  | "jobs"
  | "triggers"
  | "unwaited"
  | "callbacks"
  | "fired"
  | "signals"
  | "states"
  | "backfills"
  | "slots"
  | "handed"
  | `run:${number}`;

/** Whoever makes runs or fires triggers tells of it on the signal log, too. */
export function tellsOfStates(topic: Topic | ""): boolean {
  return topic === "states" || topic === "runs" || topic === "fired";
}

export class WakeUps {
  readonly #database: Database;
  readonly #intervalMs: number;
  readonly #enabled: boolean;
  readonly #askMs: number;
  /** Marks our own wake-ups, which PostgreSQL sends back to us as well. */
  readonly #origin = randomBytes(6).toString("hex");
  readonly #local = new Set<(topic: Topic) => void>();
  /** When each of them may be sent. */
  readonly #pending = new Map<Topic | typeof ASK, number>();
  /** Of the last `intervalMs`. */
  readonly #sentAt = new Map<Topic | typeof ASK, number>();
  readonly #wanting = new Set<object>();
  #asking: NodeJS.Timeout | undefined;
  /** Until then others want states. Who does not listen cannot be asked, and tells them. */
  #askedUntil = Number.POSITIVE_INFINITY;
  #lastSent = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #nextAt = Number.POSITIVE_INFINITY;
  #closed = false;

  constructor(database: Database, options: { intervalMs?: number; enabled?: boolean; askMs?: number } = {}) {
    this.#askMs = options.askMs ?? ASK_MS;
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

  /** Somebody here wants "states", or no longer does. */
  wantStates(who: object, isWanted: boolean): void {
    if (this.#wanting.has(who) === isWanted || this.#closed) return;
    if (isWanted) this.#wanting.add(who);
    else this.#wanting.delete(who);
    if (isWanted) this.#tell(ASK);
    if (this.#wanting.size > 0) this.#asking ??= setInterval(() => this.#tell(ASK), this.#askMs).unref();
    else {
      clearInterval(this.#asking);
      this.#asking = undefined;
    }
  }

  /** For news that this process has no use for itself. */
  tellOthers(topic: Topic): void {
    if (topic !== "states" || performance.now() < this.#askedUntil) this.#tell(topic);
  }

  #tell(topic: Topic | typeof ASK): void {
    if (!this.#enabled || this.#closed || this.#pending.has(topic)) return;
    const due = (this.#sentAt.get(topic) ?? Number.NEGATIVE_INFINITY) + this.#intervalMs;
    this.#pending.set(topic, due);
    this.#sendAt(due);
  }

  /** Topics sent by other processes. "" after a reconnect: anything may have happened. */
  async listen(onTopic: (topic: Topic | "") => void): Promise<Listening> {
    if (!this.#enabled) return { isUp: false, check: () => {}, close: async () => {} };
    if (this.#askedUntil === Number.POSITIVE_INFINITY) this.#asked();
    return this.#database.listen(CHANNEL, (payload) => {
      const [topic, origin] = payload.split(" ");
      if (origin === this.#origin) return;
      const wasAsked = performance.now() < this.#askedUntil;
      // After a reconnect, a request may have been missed.
      if (topic === ASK || topic === "") this.#asked();
      if (topic === ASK && !wasAsked) this.#tell("states");
      if (topic !== ASK) onTopic((topic ?? "") as Topic | "");
    });
  }

  #asked(): void {
    this.#askedUntil = performance.now() + 3 * this.#askMs;
  }

  /** Sends what is pending first: the receivers would otherwise wait for their next sweep. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#timer);
    clearInterval(this.#asking);
    await this.#send([...this.#pending.keys()]);
  }

  /** Or earlier, if something else is due before. */
  #sendAt(due: number): void {
    const at = Math.max(due, this.#lastSent + Math.min(GAP_MS, this.#intervalMs));
    if (at >= this.#nextAt) return;
    this.#nextAt = at;
    clearTimeout(this.#timer);
    const wait = at - performance.now();
    // At once is at the end of this turn, so that all it has to tell goes together; a timer would add a millisecond.
    if (wait > 0) this.#timer = setTimeout(() => void this.#flush(), Math.ceil(wait));
    else setImmediate(() => void this.#flush());
  }

  async #flush(): Promise<void> {
    if (this.#closed) return;
    const now = performance.now();
    this.#nextAt = Number.POSITIVE_INFINITY;
    for (const [topic, at] of this.#sentAt) if (at + this.#intervalMs <= now) this.#sentAt.delete(topic);
    const topics: (Topic | typeof ASK)[] = [];
    let next = Number.POSITIVE_INFINITY;
    for (const [topic, due] of this.#pending) {
      if (due <= now) topics.push(topic);
      else next = Math.min(next, due);
    }
    for (const topic of topics) {
      this.#pending.delete(topic);
      this.#sentAt.set(topic, now);
    }
    if (topics.length > 0) this.#lastSent = now;
    if (Number.isFinite(next)) this.#sendAt(next);
    await this.#send(topics);
  }

  async #send(topics: readonly (Topic | typeof ASK)[]): Promise<void> {
    if (topics.length === 0) return;
    const payloads = topics.map((topic) => `${topic} ${this.#origin}`);
    // A failed send is a lost wake-up: every receiver also looks on its own.
    await sendWakeUps(this.#database, CHANNEL, payloads).catch(() => {});
  }
}
