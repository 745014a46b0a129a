/**
 * An audit inside the database: PostgreSQL triggers record what cannot be seen afterwards. A trigger's row is deleted when
 * it has fired, so its owner and its earliest possible time are kept, as is every change of a wait that no order of events
 * allows.
 */
import type { FaultInstallation } from "./installation.ts";

const MAKE = [
  `CREATE TABLE audit_gone (trigger_id bigint PRIMARY KEY, owner_job bigint, standby_job bigint, wake_at timestamptz,
                            is_timed boolean)`,
  "CREATE TABLE audit_left (attempt uuid, state text)",
  "CREATE TABLE audit_forbidden (attempt uuid, what text)",
  `CREATE FUNCTION audit_trigger_gone() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
     INSERT INTO audit_gone VALUES (OLD.id, OLD.owner_job, OLD.standby_job, OLD.wake_at, OLD.timed IS NOT NULL);
     RETURN NULL;
   END $$`,
  `CREATE TRIGGER audit AFTER DELETE ON trigger FOR EACH ROW EXECUTE FUNCTION audit_trigger_gone()`,
  `CREATE FUNCTION audit_wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
     IF OLD.fired_at IS NOT NULL AND NEW.fired_at IS DISTINCT FROM OLD.fired_at THEN
       INSERT INTO audit_forbidden VALUES (OLD.attempt, 'fired twice');
     END IF;
     IF OLD.fired_at IS NOT NULL AND NEW.outcome::text IS DISTINCT FROM OLD.outcome::text THEN
       INSERT INTO audit_forbidden VALUES (OLD.attempt, 'its event was replaced by ' || NEW.outcome);
     END IF;
     IF OLD.ended_at IS NOT NULL THEN
       INSERT INTO audit_forbidden VALUES (OLD.attempt, 'changed when it was over');
     END IF;
     RETURN NULL;
   END $$`,
  `CREATE TRIGGER audit AFTER UPDATE ON deferral FOR EACH ROW EXECUTE FUNCTION audit_wait()`,
  `CREATE FUNCTION audit_task_left() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
     INSERT INTO audit_left VALUES (OLD.attempt, NEW.state);
     RETURN NULL;
   END $$`,
  `CREATE TRIGGER audit AFTER UPDATE ON task_instance FOR EACH ROW
   WHEN (OLD.state = 'deferred' AND (NEW.state <> 'deferred' OR NEW.attempt <> OLD.attempt))
   EXECUTE FUNCTION audit_task_left()`,
];

export async function startAudit(installation: FaultInstallation): Promise<void> {
  for (const sql of MAKE) await installation.sql(sql);
}

/** The recorded violations; empty: none. */
export async function auditProblems(installation: FaultInstallation): Promise<object[]> {
  return installation.sql<object>(
    `SELECT attempt, what FROM audit_forbidden
     UNION ALL SELECT attempt, 'its task went on ' || count(*) || ' times' FROM audit_left GROUP BY attempt HAVING count(*) > 1
     UNION ALL SELECT attempt, 'it is over, and its task did not go on' FROM deferral d
       -- Begun and out of time in one batch: the task was never seen to wait.
       WHERE ended_at > deferred_at AND NOT EXISTS (SELECT 1 FROM audit_left l WHERE l.attempt = d.attempt)`,
  );
}

/** A deleted trigger. */
export interface GoneTrigger {
  readonly trigger_id: number;
  /** The processes that ran it when it was deleted. */
  readonly pids: readonly number[];
  readonly wake_at: number;
  readonly is_timed: boolean;
}

export async function goneTriggers(installation: FaultInstallation): Promise<Map<number, GoneTrigger>> {
  const rows = await installation.sql<GoneTrigger>(
    `SELECT g.trigger_id, extract(epoch FROM g.wake_at)::float8 * 1000 AS wake_at, g.is_timed,
            ARRAY(SELECT pid FROM job j WHERE j.id IN (g.owner_job, g.standby_job)) AS pids
     FROM audit_gone g`,
  );
  return new Map(rows.map((row) => [row.trigger_id, row]));
}
