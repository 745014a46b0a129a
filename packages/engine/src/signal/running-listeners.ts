/** The listeners that a signal service runs in this process. */
import type { LogStart } from "../store/signal/signals-position.ts";
import { requireListen } from "./listen-request.ts";
import { Listener, type ListenerParts } from "./listener.ts";
import { memoryRecords } from "./memory-records.ts";
import type { SignalStart } from "./signal.ts";
import type { SignalService } from "./signal-service.ts";

export type ListenArguments = Parameters<SignalService["listen"]>;

interface ListenerHost extends Pick<ListenerParts, "service" | "records" | "turns" | "logger"> {
  readonly start: (from: SignalStart) => Promise<LogStart>;
}

export class RunningListeners {
  readonly #host: ListenerHost;
  readonly #listeners = new Set<Listener>();

  constructor(host: ListenerHost) {
    this.#host = host;
  }

  async listen(...[name, filter, watcher, options = {}]: ListenArguments): Promise<Listener> {
    requireListen({ name, filter, watcher, options });
    const { start, ...parts } = this.#host;
    const listener = new Listener({
      ...parts,
      name: name ?? "(without a name)",
      filter,
      watcher,
      options,
      records: name === null ? memoryRecords(start) : parts.records,
    });
    this.#listeners.add(listener);
    try {
      await listener.claimed;
    } catch (error) {
      this.#listeners.delete(listener);
      throw error;
    }
    return listener;
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#listeners].map((each) => each.stop()));
  }
}
