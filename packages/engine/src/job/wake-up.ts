/**
 * Wake-ups between processes. A wake-up carries a topic and no state: the receiver reads the database, and would have done
 * so a little later anyway, so a lost wake-up costs only time. NOTIFY takes a global lock at commit; so topics are sent in
 * separate transactions, together if they are due together. A topic is sent at once, and again after `intervalMs` at the
 * earliest, without delaying another that was not sent for longer.
 *
 * "states" and "moves" could be sent at every step of every task. They are sent only while another process requests them,
 * which that process repeats. The first request after a time without any is answered with "states", because earlier
 * changes were not sent. A process that begins to listen sends both until it would have received a request.
 */
import { randomBytes } from "node:crypto";
import type { Database, Listening } from "../store/database/database.ts";
import { sendWakeUps } from "../store/database/wake-up.ts";

const CHANNEL = "tradewind";
/** Minimum time between two transactions, for any number of topics: there are as many "run:<id>" as runs. */
const GAP_MS = 5;
/** Interval of requests for states; without a request for three intervals, none are sent. */
const ASK_MS = 5_000;
const ASK = "ask-states";

/** "runs": queued runs to start; "notices": runs with deadlines were created or started, or deliveries stored; "dags": a DAG changed; "pools": slots freed or resized; "run:<id>": that run was edited; "ended": a run ended, or tasks that the next date may wait for; "tasks": tasks ended (this process only); "jobs": a job started or ended; "triggers": new triggers; "unwaited": waits ended without their triggers, or tries without their sub-DAGs; "callbacks": unowned callbacks; "fired": a trigger fired; "signals": new signals; "states": new signals of the engine itself; "moves": tasks changed to a state without a signal; "backfills": a backfill was created, changed or released; "slots": a scheduler has free slots; "handed": it handed over runs; "reports": workers have stored reports; "assignments": assignments were cancelled, or workers drained or removed. */
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
  | "moves"
  | "backfills"
  | "slots"
  | "handed"
  | "reports"
  | "assignments"
  | `run:${number}`;

/** Topics whose events are also in the signal log, as the engine's own signals. */
export function publishesStates(topic: Topic | ""): boolean {
  return topic === "states" || topic === "runs" || topic === "fired";
}

export class WakeUps {
  readonly #database: Database;
  readonly #intervalMs: number;
  readonly #enabled: boolean;
  readonly #requestMs: number;
  /** Marks our own wake-ups, which PostgreSQL sends back to us as well. */
  readonly #origin = randomBytes(6).toString("hex");
  readonly #local = new Set<(topic: Topic) => void>();
  /** When each topic may be sent. */
  readonly #pending = new Map<Topic | typeof ASK, number>();
  /** Topics sent in the last `intervalMs`. */
  readonly #sentAt = new Map<Topic | typeof ASK, number>();
  readonly #wanting = new Set<object>();
  #requestTimer: NodeJS.Timeout | undefined;
  /** Until then another process has requested states. A process that does not listen receives no requests, and always sends. */
  #requestedUntil = Number.POSITIVE_INFINITY;
  #lastSent = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #nextAt = Number.POSITIVE_INFINITY;
  #closed = false;

  constructor(database: Database, options: { intervalMs?: number; enabled?: boolean; askMs?: number } = {}) {
    this.#requestMs = options.askMs ?? ASK_MS;
    this.#database = database;
    this.#intervalMs = options.intervalMs ?? 50;
    this.#enabled = options.enabled ?? true;
  }

  /** Listeners in this process are called at once, without the database. */
  onLocal(listener: (topic: Topic) => void): () => void {
    this.#local.add(listener);
    return () => this.#local.delete(listener);
  }

  send(topic: Topic): void {
    this.sendHere(topic);
    this.sendToOthers(topic);
  }

  /** For events that are too frequent to be sent to other processes, which poll a little later. */
  sendHere(topic: Topic): void {
    for (const listener of this.#local) listener(topic);
  }

  /** Subscribes a part of this process to "states", or ends the subscription. */
  wantStates(who: object, isWanted: boolean): void {
    if (this.#wanting.has(who) === isWanted || this.#closed) return;
    if (isWanted) this.#wanting.add(who);
    else this.#wanting.delete(who);
    if (isWanted) this.#publish(ASK);
    if (this.#wanting.size > 0)
      this.#requestTimer ??= setInterval(() => this.#publish(ASK), this.#requestMs).unref();
    else {
      clearInterval(this.#requestTimer);
      this.#requestTimer = undefined;
    }
  }

  /** For events that this process does not need itself. */
  sendToOthers(topic: Topic): void {
    const isState = topic === "states" || topic === "moves";
    if (!isState || performance.now() < this.#requestedUntil) this.#publish(topic);
  }

  #publish(topic: Topic | typeof ASK): void {
    if (!this.#enabled || this.#closed || this.#pending.has(topic)) return;
    const due = (this.#sentAt.get(topic) ?? Number.NEGATIVE_INFINITY) + this.#intervalMs;
    this.#pending.set(topic, due);
    this.#sendAt(due);
  }

  /** Topics sent by other processes. "" after a reconnect: any topic may have been missed. */
  async listen(onTopic: (topic: Topic | "") => void): Promise<Listening> {
    if (!this.#enabled) return { isUp: false, check: () => {}, close: async () => {} };
    if (this.#requestedUntil === Number.POSITIVE_INFINITY) this.#onRequest();
    return this.#database.listen(CHANNEL, (payload) => {
      const [topic, origin] = payload.split(" ");
      if (origin === this.#origin) return;
      const wasAsked = performance.now() < this.#requestedUntil;
      // After a reconnect, a request may have been missed.
      if (topic === ASK || topic === "") this.#onRequest();
      if (topic === ASK && !wasAsked) this.#publish("states");
      if (topic !== ASK) onTopic((topic ?? "") as Topic | "");
    });
  }

  #onRequest(): void {
    this.#requestedUntil = performance.now() + 3 * this.#requestMs;
  }

  /** Sends pending topics first: the receivers would otherwise wait for their next sweep. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#timer);
    clearInterval(this.#requestTimer);
    await this.#send([...this.#pending.keys()]);
  }

  /** Or earlier, if something else is due before. */
  #sendAt(due: number): void {
    const at = Math.max(due, this.#lastSent + Math.min(GAP_MS, this.#intervalMs));
    if (at >= this.#nextAt) return;
    this.#nextAt = at;
    clearTimeout(this.#timer);
    const wait = at - performance.now();
    // "At once" is the end of this turn, so that all its topics go together; a timer would add a millisecond.
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
    // A failed send is a lost wake-up: every receiver also polls.
    await sendWakeUps(this.#database, CHANNEL, payloads).catch(() => {});
  }
}
