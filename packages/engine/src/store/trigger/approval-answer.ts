/**
 * A person's answer fires the trigger of an approval, in a transaction of the API with its audit row. As with any fire,
 * no task is changed: the run's owner finds the fired wait (trigger-fire.ts).
 *
 * Two at once: the second waits for the trigger's lock and then finds no row. A concurrent timeout: the owner's batch
 * requires that the wait has not fired, and this statement that it has not ended; the first commit counts.
 */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import type { WaitOutcome } from "./trigger-fire.ts";
import { LOCK_TRIGGERS } from "./triggers.ts";

/** False: the approval is closed. Read it in a later statement of the same transaction: nothing changes it until the commit. */
export async function lockApproval(tx: Connection, id: number): Promise<boolean> {
  return (await tx.rows(LOCK_TRIGGERS, [[id]])).length > 0;
}

const ANSWER = statement(
  "approval-answer",
  `WITH fired AS (
     UPDATE deferral SET fired_at = now(), outcome = $2, answered_by = $3, waits_on = NULL
     WHERE waits_on = $1 AND kind = 'tradewind.approval' AND fired_at IS NULL AND ended_at IS NULL RETURNING attempt
   ), gone AS (
     DELETE FROM trigger WHERE id = $1 AND EXISTS (SELECT FROM fired)
   ), told AS (
     INSERT INTO signal (namespace, key, value, sender)
     SELECT 'trigger', 'tradewind.approval/' || $1::bigint, json_build_object('trigger', $1::bigint,
       'kind', 'tradewind.approval', 'outcome', $4::text, 'waits', 1), $3::text FROM fired
   )
   SELECT attempt FROM fired`,
);

/** False: the wait ended while its trigger was being locked. */
export async function answerApproval(
  tx: Connection,
  answer: {
    readonly id: number;
    readonly by: string;
    readonly comment: string | null;
    readonly outcome: WaitOutcome;
  },
): Promise<boolean> {
  const { by, comment, id, outcome } = answer;
  // The comment is kept beside the outcome of any kind.
  const stored = JSON.stringify({ ...outcome, comment });
  return (await tx.rows(ANSWER, [id, stored, by, outcome.kind])).length > 0;
}
