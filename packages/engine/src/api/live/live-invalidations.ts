/** Sources that need no read of their own: a signal or a wake-up is the change. */
import { publishesStates, type Topic as WakeUp } from "../../job/wake-up.ts";
import type { Signal } from "../../signal/signal.ts";
import { showPosition } from "../../signal/signal.ts";
import type { Database } from "../../store/database/database.ts";
import type { LogPosition } from "../../store/signal/signals-position.ts";
import { signalsSince } from "../../store/ui/live-facts.ts";
import { HOME_TOPICS, type HomePart, type LiveMessage, MOST_ENTRIES } from "./live-messages.ts";
import type { LiveSource, Reading } from "./live-source.ts";
import type { WatchedTopics } from "./watched-topics.ts";

/** Counts new signals of all namespaces, without their values. */
export class LiveSignals implements LiveSource {
  readonly gapMs = 200;
  readonly sweepMs = 5_000;
  #position: LogPosition | null = null;

  isWanted(watched: WatchedTopics): boolean {
    return watched.has("signals");
  }

  onWakeUp(topic: WakeUp): boolean {
    return topic === "signals" || publishesStates(topic);
  }

  reset(): void {
    this.#position = null;
  }

  async read(database: Database): Promise<Reading> {
    const { counts, isHeld, position } = await signalsSince(database, this.#position);
    this.#position = position;
    if (counts.length === 0) return { messages: [], isMore: isHeld };
    const message: LiveMessage = {
      topic: "signals",
      newest: Math.max(...counts.map(({ newest }) => newest)),
      position: showPosition(position),
      namespaces: Object.fromEntries(counts.map(({ count, namespace }) => [namespace, count])),
    };
    return { messages: [message], isMore: isHeld };
  }
}

export const WAIT_CHANGES: ReadonlySet<WakeUp> = new Set(["triggers", "fired", "unwaited"]);

/** A wait began, or has ended. */
export class LiveWaits implements LiveSource {
  readonly gapMs = 500;
  #hasChanged = false;

  isWanted(watched: WatchedTopics): boolean {
    return watched.has("waiting") || watched.has("home");
  }

  onWakeUp(topic: WakeUp): boolean {
    if (!WAIT_CHANGES.has(topic)) return false;
    this.#hasChanged = true;
    return true;
  }

  reset(): void {
    this.#hasChanged = false;
  }

  async read(): Promise<Reading> {
    const messages: LiveMessage[] = this.#hasChanged ? [{ topic: "waiting" }] : [];
    this.#hasChanged = false;
    return { messages };
  }
}

export class LiveAssets implements LiveSource {
  readonly gapMs = 200;
  readonly #assets = new Set<string>();

  isWanted(watched: WatchedTopics): boolean {
    return watched.has("assets");
  }

  namespaces(watched: WatchedTopics): readonly string[] {
    return this.isWanted(watched) ? ["asset"] : [];
  }

  onSignal({ key, namespace }: Signal): boolean {
    if (namespace !== "asset") return false;
    if (this.#assets.size <= MOST_ENTRIES) this.#assets.add(key);
    return true;
  }

  reset(): void {
    this.#assets.clear();
  }

  async read(): Promise<Reading> {
    const assets = [...this.#assets];
    this.#assets.clear();
    if (assets.length === 0) return { messages: [] };
    const listed = assets.slice(0, MOST_ENTRIES);
    return { messages: [{ topic: "assets", assets: listed, more: assets.length > MOST_ENTRIES }] };
  }
}

/** Actions of users: the audit log, connections and variables. */
export class LiveActions implements LiveSource {
  readonly gapMs = 200;
  readonly #connections = new Set<string>();
  readonly #variables = new Set<string>();
  #hasActed = false;

  isWanted(watched: WatchedTopics): boolean {
    return watched.has("audit") || watched.has("settings");
  }

  onSignal({ key, namespace }: Signal): boolean {
    if (namespace !== "action") return false;
    this.#hasActed = true;
    const [, kind, name = ""] = /^(connections|variables)\/(.*)$/s.exec(key) ?? [];
    if (kind === "connections") this.#connections.add(name);
    if (kind === "variables") this.#variables.add(name);
    return true;
  }

  reset(): void {
    this.#hasActed = false;
    this.#connections.clear();
    this.#variables.clear();
  }

  async read(): Promise<Reading> {
    const messages: LiveMessage[] = this.#hasActed ? [{ topic: "audit" }] : [];
    const [connections, variables] = [[...this.#connections], [...this.#variables]];
    if (connections.length + variables.length > 0)
      messages.push({ topic: "settings", pools: [], deleted_pools: [], connections, variables });
    this.reset();
    return { messages };
  }
}

const OF_HOME: ReadonlySet<string> = new Set(HOME_TOPICS);

/** Which parts of the first page have changed, from the messages of the other sources. */
export class LiveHome implements LiveSource {
  readonly gapMs = 1_000;
  /** Nothing happens when a run is late: time passes. */
  readonly sweepMs = 30_000;
  readonly #parts = new Set<HomePart>();
  #readAt = 0;

  isWanted(watched: WatchedTopics): boolean {
    return watched.has("home");
  }

  namespaces(watched: WatchedTopics): readonly string[] {
    return this.isWanted(watched) ? ["deadline"] : [];
  }

  onSignal({ namespace }: Signal): boolean {
    if (namespace !== "deadline") return false;
    this.#parts.add("deadlines");
    return true;
  }

  onMessages(messages: readonly LiveMessage[]): boolean {
    const found = messages.filter(({ topic }) => OF_HOME.has(topic));
    for (const { topic } of found) this.#parts.add(topic as HomePart);
    return found.length > 0;
  }

  reset(): void {
    this.#parts.clear();
    this.#readAt = performance.now();
  }

  async read(): Promise<Reading> {
    if (performance.now() - this.#readAt > this.sweepMs - 1_000) this.#parts.add("lateness");
    const parts = [...this.#parts];
    this.#parts.clear();
    if (parts.length === 0) return { messages: [] };
    if (parts.includes("runs") || parts.includes("lateness")) this.#readAt = performance.now();
    return { messages: [{ topic: "home", parts }] };
  }
}
