/** A stranger's process: it sends and listens over gRPC. What it does about a signal, it does on its own. */
import { SignalClient } from "../../src/signal/grpc/client.ts";
import { WRITERS, type WriterHome } from "./signal-plan.ts";
import { connect, endFile, folder, logger, plan, run, sendLedger } from "./signal-surroundings.ts";
import { throughService, write } from "./signal-writing.ts";
import { LISTEN_OPTIONS, LISTENERS, StormWatcher } from "./storm-listeners.ts";

const { FAULT_TOKEN: token = "", FAULT_URL: url = "", FAULT_WRITERS } = process.env;
const own = connect();
const service = SignalClient.connect(url, { token, logger, timeoutMs: 3_000 });
const ledger = sendLedger();
const store = throughService(service);

for (const writer of WRITERS[FAULT_WRITERS as WriterHome])
  void write(writer, { plan, ledger, store, endFile });
const { filter, from } = LISTENERS.remote;
// Not waited for: without a server nobody can say whether the name is free.
void service.listen("remote", filter, new StormWatcher("remote", folder, own), { ...LISTEN_OPTIONS, from });
run();
