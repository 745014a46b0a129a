/**
 * The trigger of a DAG whose schedule is one: a row that belongs to the DAG, made and replaced in the transaction that
 * publishes it. One that did not change keeps its row, and goes on without noticing.
 */
import type { DagManifest, TriggerCall } from "@tradewind/sdk/manifest";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { triggerFingerprint } from "../trigger/trigger-fingerprint.ts";

/**
 * Of a DAG's current version `v`: its `end` is still to come. Asked when a run would be stored, so that none is made
 * after it; and when triggers are taken and compared, so that nobody runs one that can make no more runs.
 */
export const IS_BEFORE_END = "coalesce((v.manifest->>'end')::timestamptz > now(), true)";

/** With the rows of the DAGs locked: nobody waits for a schedule's trigger, so there is nothing to look for first. */
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

/** As PostgreSQL writes bytea: array elements are texts. */
function hex(values: readonly Buffer[]): string[] {
  return values.map((value) => `\\x${value.toString("hex")}`);
}
