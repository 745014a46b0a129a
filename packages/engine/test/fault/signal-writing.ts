/** One writer of the storm, in any process: sends batch after batch, each until it is known to be stored. */
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { PostgresSignals } from "../../src/signal/postgres-signals.ts";
import { isAway } from "../../src/signal/remote-signals.ts";
import type { SignalService } from "../../src/signal/signal-service.ts";
import {
  adhoc,
  CommitUnknownError,
  type Database,
  isTransient,
  sqlState,
} from "../../src/store/database/database.ts";
import type { SendLedger } from "./send-ledger.ts";
import type { Plan, PlannedSignal, Writer } from "./signal-plan.ts";

/** Stores a batch; returns how many of its signals had been stored before. */
type Store = (batch: readonly PlannedSignal[], number: number) => Promise<number>;

export async function write(
  writer: Writer,
  parts: {
    readonly plan: Plan;
    readonly ledger: SendLedger;
    readonly store: Store;
    /** When this file exists, the writer finishes its batch and ends. */
    readonly endFile: string;
  },
): Promise<void> {
  const { endFile, ledger, plan, store } = parts;
  for (;;) {
    const { next, openSince, signals } = ledger.sent(writer);
    if (openSince === null && existsSync(endFile)) return ledger.ends(writer);
    // A batch begun by another writer keeps the time of its first send.
    if (openSince === null) ledger.begins(writer, next);
    const batch = plan.batch(writer, next, signals);
    ledger.stored(writer, next, await patiently(() => store(batch, next)));
    await sleep(plan.restMs(writer, next, signals));
  }
}

/** Retries while it is unknown whether the batch is stored. */
async function patiently<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isPassing(error)) throw error;
      await sleep(50);
    }
  }
}

function isPassing(error: unknown): boolean {
  const isBusy = BUSY.has(sqlState(error) ?? "");
  return isBusy || isTransient(error) || error instanceof CommitUnknownError || isAway(error);
}

/** Serialisation failure, deadlock, lock timeout, and a session that was idle in a transaction for too long. */
const BUSY: ReadonlySet<string> = new Set(["40001", "40P01", "55P03", "25P03"]);

export function throughService(service: SignalService): Store {
  return async (batch) => (await service.send(batch)).filter(({ isDuplicate }) => isDuplicate).length;
}

/** Its transaction gets its id long before it sends, and ends long after. */
export function lateInTransaction(database: Database, service: PostgresSignals): Store {
  return async (batch, number) => {
    const [beforeMs, afterMs] = [number % 7 === 0 ? 0 : (number * 29) % 60, (number * 37) % 50];
    const sent = await database.transaction(async (tx) => {
      await tx.rows(adhoc("INSERT INTO diary (note) VALUES ($1)"), [batch[0]?.value.id]);
      await sleep(beforeMs);
      const stored = await service.sendWithin(tx, batch);
      await sleep(number % 40 === 20 ? 800 : afterMs);
      return stored;
    });
    service.announce();
    return sent.filter(({ isDuplicate }) => isDuplicate).length;
  };
}

class ChangedItsMind extends Error {}

/** Together with a piece of work, like a task's success: both or neither. At times it sends and rolls back. */
export function boundToWork(database: Database, service: PostgresSignals): Store {
  return async (batch, number) => {
    const id = batch[0]!.value.id;
    if (number % 4 === 0) await abandon(database, service, batch);
    const isNew = await database.transaction(async (tx) => {
      const done = await tx.rows(adhoc("INSERT INTO work VALUES ($1) ON CONFLICT DO NOTHING RETURNING id"), [
        id,
      ]);
      if (done.length > 0) await service.sendWithin(tx, batch);
      return done.length > 0;
    });
    service.announce();
    return isNew ? 0 : batch.length;
  };
}

async function abandon(
  database: Database,
  service: PostgresSignals,
  batch: readonly PlannedSignal[],
): Promise<void> {
  const never = batch.map((signal) => ({ ...signal, value: { ...signal.value, never: true } }));
  try {
    await database.transaction(async (tx) => {
      await service.sendWithin(tx, never);
      await sleep(20);
      throw new ChangedItsMind();
    });
  } catch (error) {
    if (!(error instanceof ChangedItsMind)) throw error;
  }
}
