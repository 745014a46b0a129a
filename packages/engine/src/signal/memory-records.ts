/** Records of listeners without a name, kept for the lifetime of the listener. */
import type { RetryEntry } from "../store/signal/signals-listener.ts";
import type { LogStart } from "../store/signal/signals-position.ts";
import type { SignalStart } from "./signal.ts";
import type { ListenerRecords } from "./signal-service.ts";

export function memoryRecords(start: (from: SignalStart) => Promise<LogStart>): ListenerRecords {
  let first: LogStart | null = null;
  const retries = new Map<string, RetryEntry>();
  return {
    claim: async ({ from }) => {
      // Claimed again after a failure, it resumes at its position.
      first ??= await start(from);
      return { start: first, retries: [...retries.values()], hasRedeliveries: false };
    },
    commit: async (_claim, change, effect) => {
      await effect?.(null);
      for (const { key, namespace } of change.unpark ?? []) retries.delete(`${namespace}\n${key}`);
      for (const entry of change.park ?? []) retries.set(`${entry.namespace}\n${entry.key}`, entry);
      if (first !== null && change.position) first = { ...first, position: change.position };
      return { hasRedeliveries: false };
    },
    redeliveries: async () => [],
    release: async () => {},
  };
}
