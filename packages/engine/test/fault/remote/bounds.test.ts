/** How soon work goes on after a death, with the default leases and intervals of schedulers, workers and messages. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import type { LedgerLine } from "../ledger.ts";
import { PLAIN_TASK } from "../scripted-dag.ts";
import { ledgerNow } from "./storm-deck.ts";
import { type SchedulerMember, StormSite } from "./storm-site.ts";

let site: StormSite;
let gate: string;

beforeAll(async () => {
  site = await StormSite.open({ schedulers: 2, apis: 1, workers: 2, slots: 4 });
  const { installation } = site;
  gate = join(installation.root, "gate");
  await installation.publish([
    { id: "open", tasks: [{ ...PLAIN_TASK, id: "work" }] },
    { id: "gated", tasks: [{ ...PLAIN_TASK, id: "work", gate }] },
  ]);
});

/** Waits for the start of another attempt of the only task of this run. */
async function started(run: string, others: readonly string[] = []): Promise<LedgerLine> {
  let found: LedgerLine | undefined;
  await site.installation.until(
    `a start of ${run}`,
    () => {
      found = site.installation.ledger
        .lines()
        .find((line) => line.run === run && line.event === "start" && !others.includes(line.attempt));
      return found !== undefined;
    },
    60_000,
  );
  return found as LedgerLine;
}

/** The run succeeds in its first try. */
async function succeeds(run: string): Promise<void> {
  const { installation } = site;
  const sql = `SELECT 1 FROM dag_run r JOIN task_instance t ON t.dag_run_id = r.id
               WHERE r.run_id = $1 AND r.state = 'success' AND t.try_number = 1`;
  await installation.until(`success of ${run}`, async () => (await installation.sql(sql, [run])).length > 0);
}

it("starts an assignment within 5 s if its scheduler was killed between the commit and the message", async () => {
  const { installation, redis, schedulers } = site;
  const first = schedulers[0] as SchedulerMember;
  const job = await installation.jobOf(first.process);
  const sql = `SELECT a.id, r.run_id AS run, (extract(epoch FROM now() - a.created_at) * 1000)::float8 AS "ageMs"
               FROM assignment a JOIN dag_run r ON r.id = a.dag_run_id
               WHERE r.owner_job = $1 AND a.worker_job IS NULL`;
  first.redis.set("hang");
  // The schedulers share the runs.
  for (let n = 0; n < 8; n++) await installation.trigger("open", `open_${n}`);
  let lost: { id: string; run: string; ageMs: number } | undefined;
  await installation.until("an assignment without a message", async () => {
    [lost] = await installation.sql<{ id: string; run: string; ageMs: number }>(sql, [job]);
    return lost !== undefined && (await redis.client.zscore("tradewind:default", lost.id)) === null;
  });
  await first.process.kill();
  const { ageMs, id, run } = lost!;
  const committed = ledgerNow() - ageMs;
  first.redis.set("cut");
  const { at, attempt } = await started(run);
  // The assignment that was committed, not another one.
  expect(attempt).toBe(id);
  expect(at - committed).toBeLessThan(5_000);
  await succeeds(run);
  first.redis.set("pass");
  first.process = await first.start();
});

it("starts the work of a dead worker elsewhere within 30 s", { timeout: 90_000 }, async () => {
  const { installation, workers } = site;
  await installation.trigger("gated", "gated");
  const { attempt, scheduler } = await started("gated");
  const victim = workers.find(({ process: { pid } }) => pid === scheduler);
  await victim?.process.kill();
  const killed = ledgerNow();
  const next = await started("gated", [attempt]);
  expect(workers.filter((each) => each !== victim).map(({ process: { pid } }) => pid)).toContain(
    next.scheduler,
  );
  expect(next.at - killed).toBeLessThan(30_000);
  writeFileSync(gate, "");
  await succeeds("gated");
});
