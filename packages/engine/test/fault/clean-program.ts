/**
 * A process that cleans history in small batches, for tests that kill it. Prints after each batch what it has deleted, then
 * pauses, so that other events happen in between even on a fast machine.
 */
import { Database } from "../../src/store/database/database.ts";
import { cleanHistory } from "../../src/store/run/history.ts";

const [url, olderThanMs, batch, restMs] = process.argv.slice(2);
const db = Database.connect(url as string);
const say = (what: string, counts: object) => process.stdout.write(`${JSON.stringify({ what, counts })}\n`);
const counts = await cleanHistory(db, {
  olderThanMs: Number(olderThanMs),
  dryRun: false,
  batch: Number(batch),
  onProgress: (deleted) => {
    say("batch", deleted);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(restMs));
  },
});
say("done", counts);
await db.close();
