/**
 * Many signals at once for one task, and the same number of tasks in a row: a start must cost about as much as a task, for
 * any number of pending starts. Both in one process on one database, the tasks before and after the starts: their ratio
 * does not depend on the machine, nor on a load that rises or falls evenly.
 *
 * A start stores more than a task of a chain: the signal, its place in the queue of starts, and the previous try, which
 * moves to the history. The bar of the time allows for these rows; a cost that grows with the queue exceeds it at once.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { adhoc, type Database } from "../../../packages/engine/src/store/database/database.ts";
import { sendSignals } from "../../../packages/engine/src/store/signal/signals.ts";
import type { Figure } from "../../result.ts";
import { openRig, type Rig } from "../../rig.ts";
import { chainFile } from "../../shapes.ts";
import { digits } from "../../statistics.ts";

const STARTED_FILE = `import { dag, signal, start } from "tradewind";

export default dag("started", { stop: signal("over") }, (d) => {
  d.task("work", { on: [start(signal("go"))] }, () => {});
});
`;

const PAGE = 500;

interface Cost {
  readonly seconds: number;
  readonly walBytes: number;
}

export async function burstOfStarts(options: { readonly quick: boolean }): Promise<Figure[]> {
  const count = options.quick ? 1_000 : 10_000;
  const rig = await openRig();
  try {
    await rig.publish({ "chain.ts": chainFile("chain", count), "started.ts": STARTED_FILE });
    // The task processes have loaded the code.
    await rig.run(["chain"]);
    const chain = () => costOf(rig.database, async () => void (await rig.run(["chain"])));
    const before = await chain();
    const starts = await costOf(rig.database, () => burst(rig, count));
    const tasks = mean(before, await chain());
    const shown = ({ seconds, walBytes }: Cost) =>
      `${digits(count / seconds)}/s, ${digits(walBytes / 1e6)} MB of WAL`;
    const note = `starts ${shown(starts)}; tasks ${shown(tasks)}`;
    return [
      {
        scenario: "g",
        what: `${count} signals at once for one task, beside a chain of ${count} tasks: time`,
        value: starts.seconds / tasks.seconds,
        unit: "x",
        bar: { atMost: 1.5 },
        note,
      },
      {
        scenario: "g",
        what: `${count} signals at once for one task, beside a chain of ${count} tasks: WAL, sending included`,
        value: starts.walBytes / tasks.walBytes,
        unit: "x",
        bar: { atMost: 3 },
        note,
      },
    ];
  } finally {
    await rig.stop();
  }
}

function mean(one: Cost, other: Cost): Cost {
  return { seconds: (one.seconds + other.seconds) / 2, walBytes: (one.walBytes + other.walBytes) / 2 };
}

async function burst(rig: Rig, count: number): Promise<void> {
  const [id] = await rig.create(["started"]);
  for (let sent = 0; sent < count; sent += PAGE) {
    const page = Array.from({ length: Math.min(PAGE, count - sent) }, () => ({
      namespace: "default",
      key: "go",
      value: null,
      sender: "bench",
    }));
    await rig.database.transaction((tx) => sendSignals(tx, page));
    rig.scheduler["requestSignals"]();
  }
  await worked(rig.database, id!, count);
  await rig.database.transaction((tx) =>
    sendSignals(tx, [{ namespace: "default", key: "over", value: null, sender: "bench" }]),
  );
  rig.scheduler["requestSignals"]();
  await rig.ended([id!]);
}

async function worked(database: Database, runId: number, times: number): Promise<void> {
  const sql = adhoc("SELECT state, try_number FROM task_instance WHERE dag_run_id = $1 AND task_id = 'work'");
  const deadline = performance.now() + 600_000;
  for (;;) {
    const row = await database.one<{ state: string; try_number: number }>(sql, [runId]);
    if (row?.state === "success" && row.try_number === times) return;
    if (performance.now() > deadline) throw new Error(`started ${row?.try_number} of ${times} times`);
    await sleep(50);
  }
}

async function costOf(database: Database, work: () => Promise<void>): Promise<Cost> {
  const position = adhoc("SELECT pg_current_wal_lsn() - '0/0' AS at");
  // Full-page writes after a checkpoint would be counted for the first of the two.
  await database.rows(adhoc("CHECKPOINT"));
  const from = await database.one<{ at: string }>(position);
  const started = performance.now();
  await work();
  const seconds = (performance.now() - started) / 1_000;
  const to = await database.one<{ at: string }>(position);
  return { seconds, walBytes: Number(to!.at) - Number(from!.at) };
}
