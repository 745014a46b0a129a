/** Records of listeners in the database: the position is stored in the transaction of the effect. */
import type { Database } from "../store/database/database.ts";
import {
  claimListener,
  commitListener,
  releaseListener,
  renewListener,
} from "../store/signal/signals-listener.ts";
import type { LogStart } from "../store/signal/signals-position.ts";
import { type DeadLetterRow, readRedeliveries } from "../store/signal/signals-watch.ts";
import { keysOf, type SignalFilter, type SignalStart } from "./signal.ts";
import type { DeadLetter, ListenerRecords } from "./signal-service.ts";

export function postgresRecords(
  database: Database,
  start: (from: SignalStart) => Promise<LogStart>,
): ListenerRecords {
  return {
    claim: ({ filter, from, ...claim }) =>
      claimListener(database, { ...claim, filter: filterDocument(filter) }, () => start(from)),
    commit: (claim, change, effect) => {
      const { position, ...rest } = change;
      const isRenewal = effect === undefined && Object.values(rest).every((each) => each === undefined);
      if (isRenewal) return renewListener(database, claim, position ?? null);
      return database.transaction(async (tx) => {
        await effect?.(tx);
        return commitListener(tx, claim, change);
      });
    },
    redeliveries: async (name) => (await readRedeliveries(database, name)).map(deadLetterOf),
    release: (claim) => releaseListener(database, claim),
  };
}

export function deadLetterOf(row: DeadLetterRow): DeadLetter {
  const { key, namespace, sender, value } = row;
  return {
    id: row.id,
    listener: row.listener,
    signal: {
      namespace,
      key,
      value,
      sender,
      version: row.signal_id,
      time: row.sent_at,
      position: `${row.tx}-${row.signal_id}`,
    },
    error: row.error,
    attempts: row.attempts,
    time: row.created_at,
    isRetried: row.retry_at !== null,
  };
}

function filterDocument(filter: SignalFilter) {
  const { namespace = "default", sender = null } = filter;
  return { namespace, keys: keysOf(filter), sender };
}
