/** Signal services on separate databases, for the conformance suite. */

import { WakeUps } from "../../src/job/wake-up.ts";
import type { ConformanceSubject } from "../../src/signal/conformance/conformance.ts";
import { PostgresSignals } from "../../src/signal/postgres-signals.ts";
import type { SignalService } from "../../src/signal/signal-service.ts";
import { adhoc, type Connection, Database } from "../../src/store/database/database.ts";
import { openTransaction } from "./open-transaction.ts";
import { testDatabase } from "./test-database.ts";

export interface SignalStage {
  readonly url: string;
  readonly db: Database;
  /** A service that appears as a separate process to the database. */
  open(): PostgresSignals;
}

export interface SubjectOptions {
  readonly notify?: boolean;
  /** A layer in front of the service; by default the service itself. */
  readonly front?: (stage: SignalStage) => Promise<{ service: SignalService; close(): Promise<void> }>;
}

export async function signalSubject({
  front,
  notify = true,
}: SubjectOptions = {}): Promise<ConformanceSubject> {
  const test = await testDatabase();
  const closing: (() => Promise<void>)[] = [];
  const stage: SignalStage = {
    url: test.url,
    db: test.db,
    open: () => {
      const database = Database.connect(test.url, { max: 12 });
      const wakeUps = new WakeUps(database, { enabled: notify });
      const service = new PostgresSignals({ database, wakeUps, sender: "test" });
      closing.push(async () => {
        await service.close();
        await wakeUps.close();
        await database.close();
      });
      return service;
    },
  };
  const open = async (): Promise<SignalService> => {
    if (front === undefined) return stage.open();
    const made = await front(stage);
    closing.push(() => made.close());
    return made.service;
  };
  await test.db.rows(adhoc("CREATE TABLE effect (id bigint GENERATED ALWAYS AS IDENTITY, note text)"));
  const direct = stage.open();
  return {
    service: await open(),
    another: open,
    sendLate: (signals) => openTransaction(test.db, (tx) => direct.sendWithin(tx, signals)),
    effects: {
      note: async (tx: Connection, text) => {
        await tx.rows(adhoc("INSERT INTO effect (note) VALUES ($1)"), [text]);
      },
      read: async () =>
        (await test.db.rows<{ note: string }>(adhoc("SELECT note FROM effect ORDER BY id"))).map(
          ({ note }) => note,
        ),
    },
    close: async () => {
      for (const close of closing.splice(0).reverse()) await close();
      await test.close();
    },
  };
}

/** The stage of a subject alone, for tests that open services themselves. */
export async function signalStage() {
  let stage!: SignalStage;
  const subject = await signalSubject({
    front: async (given) => {
      stage = given;
      return { service: given.open(), close: async () => {} };
    },
  });
  return { stage, close: () => subject.close() };
}
