/** An external process that sends and listens over gRPC. Its effects are outside of the engine's transactions. */
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
// Not awaited: without a server it is unknown whether the name is free.
void service.listen("remote", filter, new StormWatcher("remote", folder, own), { ...LISTEN_OPTIONS, from });
run();
