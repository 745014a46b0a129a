/** Some of the listeners of the signal storm, as a separate process, for a test that kills, stops and cuts it off. */

import { WakeUps } from "../../src/job/wake-up.ts";
import { PostgresSignals } from "../../src/signal/postgres-signals.ts";
import { connect, folder, isHearing, logger, run } from "./signal-surroundings.ts";
import { LISTEN_OPTIONS, LISTENERS, type ListenerName, StormWatcher } from "./storm-listeners.ts";

const names = (process.env.FAULT_LISTENERS ?? "").split(",") as ListenerName[];
const database = connect();
const wakeUps = new WakeUps(database, { enabled: isHearing });
const service = new PostgresSignals({ database, wakeUps, logger });
await Promise.all(
  names.map((name) => {
    const { filter, from } = LISTENERS[name];
    return service.listen(name, filter, new StormWatcher(name, folder), { ...LISTEN_OPTIONS, from });
  }),
);
run(async () => {
  await service.close();
  await wakeUps.close();
  await database.close();
});
