/** A process with one listener, whose effect is a row per signal, for tests that kill it. Prints "begun" in each effect. */

import { WakeUps } from "../../src/job/wake-up.ts";
import { PostgresSignals } from "../../src/signal/postgres-signals.ts";
import { adhoc, Database } from "../../src/store/database/database.ts";

const [url = "", name = "", hang = "no"] = process.argv.slice(2);
const database = Database.connect(url, { max: 4 });
const service = new PostgresSignals({ database, wakeUps: new WakeUps(database) });
await service.listen(
  name,
  { key: "*" },
  {
    process: async (signals, tx) => {
      await tx!.rows(adhoc("INSERT INTO effect (note) SELECT unnest($1::text[])"), [
        signals.map(({ key, value }) => `${name} ${key} ${value}`),
      ]);
      process.stdout.write("begun\n");
      if (hang === "hang") await new Promise(() => {});
    },
  },
  { from: "start", leaseMs: 500, batch: 40 },
);
process.stdout.write("listening\n");
