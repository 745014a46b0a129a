/** Triggers and waits as rows. */
import { randomBytes, randomUUID } from "node:crypto";
import type { Json } from "@tradewind/sdk/manifest";
import { adhoc, type Connection, type Database } from "../../src/store/database/database.ts";
import { registerJob } from "../../src/store/job/job-lease.ts";

export interface TriggerSeed {
  readonly kind?: string;
  readonly args?: Json;
  readonly queue?: string;
  readonly replicas?: 1 | 2;
  readonly dagId?: string;
  /** Relative to now. */
  readonly wakeMs?: number;
  readonly timed?: { readonly payload: Json };
  readonly ownerJob?: number;
  readonly standbyJob?: number;
}

export async function seedTrigger(db: Connection, seed: TriggerSeed = {}): Promise<number> {
  const row = await db.one<{ id: number }>(
    adhoc(`INSERT INTO trigger (fingerprint, kind, args, queue, replicas, dag_id, wake_at, timed, owner_job, standby_job)
           VALUES ($1, $2, $3, $4, $5, $6, now() + $7 * interval '1 millisecond', $8, $9, $10) RETURNING id`),
    [
      randomBytes(32),
      seed.kind ?? "test.kind",
      JSON.stringify(seed.args ?? {}),
      seed.queue ?? "default",
      seed.replicas ?? 1,
      seed.dagId ?? null,
      seed.wakeMs ?? 0,
      seed.timed === undefined ? null : JSON.stringify(seed.timed),
      seed.ownerJob ?? null,
      seed.standbyJob ?? null,
    ],
  );
  if (!row) throw new Error("no trigger");
  return row.id;
}

/** A wait of a task of the run; returns its attempt. */
export async function seedWait(
  db: Connection,
  wait: { readonly runId: number; readonly triggerId: number; readonly taskId?: string },
): Promise<string> {
  const attempt = randomUUID();
  await db.rows(
    adhoc(`INSERT INTO deferral (attempt, dag_run_id, task_id, map_index, try_number, trigger_id, waits_on, kind, kwargs,
                                 on_timeout, on_failure)
           VALUES ($1, $2, $3, -1, 1, $4, $4, 'test.kind', '{}', 'fail', 'fail')`),
    [attempt, wait.runId, wait.taskId ?? "t0", wait.triggerId],
  );
  return attempt;
}

export interface WaitRow {
  readonly attempt: string;
  readonly waits_on: number | null;
  readonly fired_at: Date | null;
  readonly outcome: Json;
}

export async function waitRow(db: Connection, attempt: string): Promise<WaitRow> {
  const row = await db.one<WaitRow>(
    adhoc("SELECT attempt, waits_on, fired_at, outcome FROM deferral WHERE attempt = $1"),
    [attempt],
  );
  if (!row) throw new Error(`no wait ${attempt}`);
  return row;
}

export interface TriggerRow {
  readonly id: number;
  readonly owner_job: number | null;
  readonly standby_job: number | null;
  readonly polled_at: Date | null;
  readonly wake_at: Date;
}

export async function triggerRow(db: Connection, id: number): Promise<TriggerRow | undefined> {
  return await db.one<TriggerRow>(
    adhoc("SELECT id, owner_job, standby_job, polled_at, wake_at FROM trigger WHERE id = $1"),
    [id],
  );
}

/** A triggerer's job; 0 ms: its lease has expired. */
export async function seedTriggerer(db: Database, leaseMs = 60_000): Promise<number> {
  return (await registerJob(db, { kind: "triggerer", hostname: "here", pid: 1, version: "0" }, leaseMs)).id;
}
