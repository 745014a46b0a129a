/**
 * The trigger of a DAG that is scheduled on events: a row that belongs to the DAG, created and replaced in the
 * transaction that publishes it. An unchanged trigger keeps its row and continues undisturbed.
 */
import type { DagManifest, TriggerCall } from "@tradewind/sdk/manifest";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { triggerFingerprint } from "../trigger/trigger-fingerprint.ts";

/**
 * SQL for a DAG's current version `v`: its `end` is in the future. Checked when a run is stored, so that none is created
 * after it; and when triggers are claimed and compared, so that no triggerer runs a trigger that can create no more runs.
 */
export const IS_BEFORE_END = "coalesce((v.manifest->>'end')::timestamptz > now(), true)";

/** The rows of the DAGs are locked. No task waits for the trigger of a schedule, so there are no waits to check first. */
const REMOVE = statement(
  "catalogue-remove-triggers",
  "DELETE FROM trigger WHERE dag_id = ANY($1::text[]) AND fingerprint <> ALL($2::bytea[])",
);

const ADD = statement(
  "catalogue-add-triggers",
  `INSERT INTO trigger (fingerprint, kind, args, bundle_hash, queue, replicas, dag_id, wake_at, timed)
   SELECT u.fingerprint, u.kind, u.args, u.bundle, u.queue, u.replicas, u.dag,
          greatest(now() + u.after * interval '1 millisecond', u.at, u.start), u.timed
   FROM unnest($1::bytea[], $2::text[], $3::json[], $4::text[], $5::text[], $6::smallint[], $7::text[], $8::float8[],
               $9::timestamptz[], $10::timestamptz[], $11::json[])
     AS u(fingerprint, kind, args, bundle, queue, replicas, dag, after, at, start, timed)
   ORDER BY u.fingerprint ON CONFLICT (fingerprint) DO NOTHING`,
);

export interface ScheduledDag {
  readonly manifest: DagManifest;
  readonly bundleHash: string;
}

export async function setScheduleTriggers(tx: Connection, dags: readonly ScheduledDag[]): Promise<void> {
  if (dags.length === 0) return;
  const rows = dags.flatMap(({ manifest, bundleHash }) => {
    if (manifest.schedule.kind !== "trigger") return [];
    const { trigger } = manifest.schedule;
    const bundle = trigger.source === "bundle" ? bundleHash : null;
    return [{ manifest, trigger, bundle, fingerprint: triggerFingerprint(trigger, bundle, manifest.dagId) }];
  });
  await tx.rows(REMOVE, [
    dags.map(({ manifest }) => manifest.dagId),
    hex(rows.map((row) => row.fingerprint)),
  ]);
  if (rows.length === 0) return;
  await tx.rows(ADD, [
    hex(rows.map((row) => row.fingerprint)),
    rows.map((row) => row.trigger.kind),
    rows.map((row) => JSON.stringify(row.trigger.args)),
    rows.map((row) => row.bundle),
    rows.map((row) => row.trigger.queue),
    rows.map((row) => row.trigger.replicas),
    rows.map((row) => row.manifest.dagId),
    rows.map((row) => afterMs(row.trigger)),
    rows.map((row) => (row.trigger.wake && "at" in row.trigger.wake ? row.trigger.wake.at : null)),
    rows.map((row) => row.manifest.start),
    rows.map((row) => (row.trigger.timed === null ? null : JSON.stringify(row.trigger.timed))),
  ]);
}

function afterMs({ wake }: TriggerCall): number {
  return wake && "afterMs" in wake ? wake.afterMs : 0;
}

/** PostgreSQL's text form of bytea: array elements are texts. */
function hex(values: readonly Buffer[]): string[] {
  return values.map((value) => `\\x${value.toString("hex")}`);
}
