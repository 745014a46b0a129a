/**
 * What the live streams of this process send: it follows the signal log and the wake-ups, reads what they announce, and puts
 * messages into the buffer. It rests while no topic is watched.
 *
 * Nothing is stored: after a restart, or when messages were lost with the connection to the database, all streams have
 * to read their data again.
 */
import type { Topic as WakeUp, WakeUps } from "../../job/wake-up.ts";
import { messageOf } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import { type Follower, LogTail } from "../../signal/log-tail.ts";
import type { Signal } from "../../signal/signal.ts";
import type { Database } from "../../store/database/database.ts";
import { LiveBuffer } from "./live-buffer.ts";
import { type Reading, SourceLoop } from "./live-source.ts";
import { liveSources } from "./live-sources.ts";
import { WatchedTopics } from "./watched-topics.ts";

interface LiveFeedOptions {
  readonly database: Database;
  readonly wakeUps: Pick<WakeUps, "listen" | "onLocal" | "wantStates">;
  readonly logger: Logger;
  /** How long a topic stays watched after its last stream has left: the time to reconnect. */
  readonly lingerMs?: number;
}

const LINGER_MS = 30_000;
/** Messages are at least 100 ms apart: more frequent polls of the log would only cost. */
const FLOW_MS = 50;
/** Of every process with a stream. They carry the wake-ups along. */
const ALWAYS = ["run", "action"] as const;

export class LiveFeed {
  readonly buffer = new LiveBuffer();
  readonly watched = new WatchedTopics();
  readonly #logger: Logger;
  readonly #tail: LogTail;
  readonly #loops: readonly SourceLoop[];
  readonly #followers = new Map<string, { readonly follower: Follower; readonly joined: Promise<void> }>();
  readonly #lingerMs: number;
  #listening: Promise<unknown> | undefined;
  #expiry: NodeJS.Timeout | undefined;
  #hasFailed = false;
  #isClosed = false;

  constructor({ database, lingerMs = LINGER_MS, logger, wakeUps }: LiveFeedOptions) {
    this.#logger = logger;
    this.#lingerMs = lingerMs;
    this.#tail = new LogTail({
      database,
      logger,
      flowMs: FLOW_MS,
      wakeUps: {
        // One connection for both.
        listen: (onTopic) => {
          const listening = wakeUps.listen((topic) => {
            this.#onWakeUp(topic);
            onTopic(topic);
          });
          this.#listening = listening;
          return listening;
        },
        onLocal: (onTopic) =>
          wakeUps.onLocal((topic) => {
            this.#onWakeUp(topic);
            onTopic(topic);
          }),
        wantStates: (who, isWanted) => wakeUps.wantStates(who, isWanted),
      },
    });
    const parts = {
      ...{ database, watched: this.watched },
      onReading: (reading: Reading) => this.#publish(reading),
      onFailure: (error: unknown) => this.#onFailure(error),
    };
    this.#loops = liveSources().map((source) => new SourceLoop({ ...parts, source }));
  }

  /** Resolves when every later change of these topics is a message. Call `unwatch` in any case. */
  async watch(topics: Iterable<string>): Promise<void> {
    this.watched.add(topics, this.buffer.last);
    this.#apply();
    for (const loop of this.#loops) if (loop.isWanted && loop.source.onTopics?.(this.watched)) loop.call();
    // Without it the sources read regularly.
    await this.#listening?.catch(() => {});
    await Promise.all([
      ...[...this.#followers.values()].map(({ joined }) => joined),
      ...this.#loops.filter(({ isWanted }) => isWanted).map((loop) => loop.ready()),
    ]);
  }

  unwatch(topics: Iterable<string>): void {
    this.watched.remove(topics);
    if (this.#isClosed) return;
    this.#expiry ??= setTimeout(() => this.#expire(), this.#lingerMs).unref();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#expiry);
    for (const loop of this.#loops) loop.want(false);
    for (const { follower } of this.#followers.values()) this.#tail.leave(follower);
    this.#followers.clear();
    await this.#tail.close();
  }

  #expire(): void {
    this.#expiry = undefined;
    this.watched.expire(this.#lingerMs);
    this.#apply();
    if (this.watched.hasIdle) this.#expiry = setTimeout(() => this.#expire(), this.#lingerMs).unref();
  }

  /** Starts and stops loops and followers as the topics require. */
  #apply(): void {
    if (this.#isClosed) return;
    for (const loop of this.#loops) loop.want(loop.source.isWanted(this.watched));
    const wanted = this.#loops.filter(({ isWanted }) => isWanted);
    const namespaces = new Set<string>(this.watched.isEmpty ? [] : ALWAYS);
    for (const { source } of wanted)
      for (const namespace of source.namespaces?.(this.watched) ?? []) namespaces.add(namespace);
    for (const [namespace, { follower }] of this.#followers)
      if (!namespaces.has(namespace)) {
        this.#tail.leave(follower);
        this.#followers.delete(namespace);
      }
    for (const namespace of namespaces)
      if (!this.#followers.has(namespace)) this.#followers.set(namespace, this.#follow(namespace));
  }

  #follow(namespace: string) {
    const { promise: joined, resolve } = Promise.withResolvers<void>();
    const follower: Follower = {
      filter: { namespace, key: "*" },
      joined: () => resolve(),
      hand: (signals) => this.#onSignals(signals),
    };
    this.#tail.follow(follower);
    return { follower, joined };
  }

  #onSignals(signals: readonly Signal[]): void {
    for (const loop of this.#loops) {
      if (!loop.isWanted) continue;
      let isCalled = false;
      for (const signal of signals) if (loop.source.onSignal?.(signal, this.watched)) isCalled = true;
      if (isCalled) loop.call();
    }
  }

  #onWakeUp(topic: WakeUp | ""): void {
    if (topic === "") this.#resync();
    else for (const loop of this.#loops) if (loop.isWanted && loop.source.onWakeUp?.(topic)) loop.call();
  }

  #publish({ isLost = false, messages }: Reading): void {
    if (this.#hasFailed || isLost) {
      this.#hasFailed = false;
      this.#resync();
    }
    this.buffer.append(messages.filter(({ topic }) => this.watched.has(topic)));
    for (const loop of this.#loops) if (loop.isWanted && loop.source.onMessages?.(messages)) loop.call();
  }

  #onFailure(error: unknown): void {
    if (!this.#hasFailed) this.#logger.warn("could not read live changes", { error: messageOf(error) });
    this.#hasFailed = true;
  }

  /** Wake-ups or changes were lost. */
  #resync(): void {
    if (this.watched.isEmpty) return;
    this.buffer.reset();
    for (const loop of this.#loops) loop.call();
  }
}
