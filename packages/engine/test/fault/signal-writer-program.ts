/** Some of the writers of the signal storm, as a separate process, for a test that kills, stops and cuts it off. */

import { WakeUps } from "../../src/job/wake-up.ts";
import { PostgresSignals } from "../../src/signal/postgres-signals.ts";
import { WRITERS, type Writer, type WriterHome } from "./signal-plan.ts";
import { connect, endFile, isHearing, logger, plan, run, sendLedger } from "./signal-surroundings.ts";
import { boundToWork, lateInTransaction, throughService, write } from "./signal-writing.ts";

const database = connect();
const wakeUps = new WakeUps(database, { enabled: isHearing });
const service = new PostgresSignals({ database, wakeUps, logger });
const ledger = sendLedger();

const stores = {
  numbered: throughService(service),
  late: lateInTransaction(database, service),
  bound: boundToWork(database, service),
  remote: throughService(service),
};
const writers: readonly Writer[] = WRITERS[process.env.FAULT_WRITERS as WriterHome];
for (const writer of writers) void write(writer, { plan, ledger, store: stores[writer.kind], endFile });
run();
