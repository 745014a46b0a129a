/** The machine of a measurement: figures are meaningless without it. */
import { availableParallelism, cpus, loadavg, totalmem } from "node:os";
import { adhoc, type Database } from "../packages/engine/src/store/database/database.ts";

export interface Machine {
  readonly cores: number;
  readonly cpu: string;
  readonly memoryGb: number;
  readonly node: string;
  readonly postgres: string;
  readonly fsync: string;
  readonly synchronousCommit: string;
  /** Time to commit one small row on one connection: the lower bound of every chain. */
  readonly commitMs: number;
}

export async function machineFacts(database: Database): Promise<Machine> {
  const setting = async (name: string) =>
    (await database.one<{ value: string }>(adhoc("SELECT current_setting($1) AS value"), [name]))?.value ??
    "?";
  return {
    cores: availableParallelism(),
    cpu: cpus()[0]?.model ?? "?",
    memoryGb: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    postgres: await setting("server_version"),
    fsync: await setting("fsync"),
    synchronousCommit: await setting("synchronous_commit"),
    commitMs: await commitMs(database),
  };
}

/** Shows other work on the machine, before and after. */
export function load(): number {
  return loadavg()[0] ?? 0;
}

async function commitMs(database: Database): Promise<number> {
  await database.rows(adhoc("CREATE TABLE IF NOT EXISTS bench_commit (n int)"));
  const insert = { name: "bench-commit", text: "INSERT INTO bench_commit VALUES (1)" };
  const times: number[] = [];
  for (let n = 0; n < 200; n++) {
    const started = performance.now();
    await database.pipeline([{ statement: insert, values: [] }]);
    times.push(performance.now() - started);
  }
  await database.rows(adhoc("DROP TABLE bench_commit"));
  return times.toSorted((a, b) => a - b)[times.length >> 1] ?? 0;
}
