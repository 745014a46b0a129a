/** Triggers and waits as rows, as the scheduler and the triggerers write them. */
import { randomBytes, randomUUID } from "node:crypto";
import type { Json } from "@tradewind/sdk/manifest";
import type { Installation } from "./installation.ts";

export interface TriggerSeed {
  readonly kind: string;
  readonly args: Json;
  readonly queue: string;
  readonly replicas: 1 | 2;
  readonly dagId: string;
  readonly bundleHash: string;
  readonly wakeAt: Date;
  readonly timed: Json;
  readonly owner: number;
  readonly standby: number;
  readonly polledAt: Date;
}

export async function addTriggerer(
  tw: Installation,
  job: { readonly host?: string; readonly leaseSeconds?: number; readonly facts?: Json } = {},
): Promise<number> {
  const [row] = await tw.sql<{ id: number }>(
    `INSERT INTO job (kind, hostname, pid, version, lease_until, facts)
     VALUES ('triggerer', $1, 1, '0.1.0', now() + make_interval(secs => $2), $3) RETURNING id`,
    [
      job.host ?? "host-t",
      job.leaseSeconds ?? 60,
      job.facts === undefined ? null : JSON.stringify(job.facts),
    ],
  );
  return row!.id;
}

export async function addTrigger(tw: Installation, seed: Partial<TriggerSeed> = {}): Promise<number> {
  const [row] = await tw.sql<{ id: number }>(
    `INSERT INTO trigger (fingerprint, kind, args, bundle_hash, queue, replicas, dag_id, wake_at, timed, owner_job, standby_job, polled_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, COALESCE($8, now()), $9, $10, $11, $12) RETURNING id`,
    [
      randomBytes(32),
      seed.kind ?? "file",
      JSON.stringify(seed.args ?? {}),
      seed.bundleHash ?? null,
      seed.queue ?? "default",
      seed.replicas ?? 1,
      seed.dagId ?? null,
      seed.wakeAt ?? null,
      seed.timed === undefined ? null : JSON.stringify(seed.timed),
      seed.owner ?? null,
      seed.standby ?? null,
      seed.polledAt ?? null,
    ],
  );
  return row!.id;
}

export interface WaitSeed {
  readonly dagRunId: number;
  readonly taskId: string;
  readonly mapIndex: number;
  readonly triggerId: number;
  readonly kind: string;
  readonly name: string;
  readonly method: string;
  readonly since: Date;
  readonly timeoutAt: Date;
  readonly startedAt: Date;
  readonly kwargs: Json;
}

/** A deferred instance and its wait; returns the attempt. */
export async function addWait(
  tw: Installation,
  seed: Partial<WaitSeed> & Pick<WaitSeed, "dagRunId" | "taskId" | "triggerId">,
): Promise<string> {
  const attempt = randomUUID();
  await tw.addInstance(seed.dagRunId, seed.taskId, {
    state: "deferred",
    tryNumber: 1,
    attempt,
    mapIndex: seed.mapIndex ?? -1,
    ...(seed.startedAt === undefined ? {} : { startedAt: seed.startedAt }),
  });
  await tw.sql(
    `INSERT INTO deferral (attempt, dag_run_id, task_id, map_index, try_number, trigger_id, waits_on, kind, name, method,
                           kwargs, on_timeout, on_failure, timeout_at, deferred_at)
     VALUES ($1, $2, $3, $4, 1, $5, $5, $6, $7, $8, $11, 'fail', 'fail', $9, COALESCE($10, now()))`,
    [
      attempt,
      seed.dagRunId,
      seed.taskId,
      seed.mapIndex ?? -1,
      seed.triggerId,
      seed.kind ?? "file",
      seed.name ?? null,
      seed.method ?? null,
      seed.timeoutAt ?? null,
      seed.since ?? null,
      JSON.stringify(seed.kwargs ?? {}),
    ],
  );
  return attempt;
}

/** A wait that has ended. */
export async function addPastWait(
  tw: Installation,
  of: { readonly dagRunId: number; readonly taskId: string },
  wait: { readonly outcome: string; readonly endKind: string; readonly at: Date },
): Promise<void> {
  await tw.sql(
    `INSERT INTO deferral (attempt, dag_run_id, task_id, map_index, try_number, trigger_id, kind, kwargs, on_timeout, on_failure,
                           deferred_at, fired_at, outcome, ended_at, end_kind)
     VALUES ($1, $2, $3, -1, 1, 7, 'http', '{}', 'fail', 'fail', $4::timestamptz, $4::timestamptz + interval '1 minute', $5,
             $4::timestamptz + interval '61 seconds', $6)`,
    [randomUUID(), of.dagRunId, of.taskId, wait.at, wait.outcome, wait.endKind],
  );
}
