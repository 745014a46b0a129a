/** What a missed deadline says to people and programs. */
import type { Json } from "@tradewind/sdk/manifest";
import type { TakenDelivery } from "../store/deadline-deliveries.ts";

/** The body of a webhook. */
export function missDocument(delivery: TakenDelivery): { readonly [key: string]: Json } {
  return {
    event: "deadline.missed",
    /** The same for every attempt: who has seen it may drop it. */
    delivery: delivery.id,
    attempt: delivery.attempts,
    dag_id: delivery.dag_id,
    dag_run_id: delivery.run_id,
    task_id: delivery.task_id === "" ? null : delivery.task_id,
    ordinal: delivery.ordinal,
    after: delivery.counts_from,
    due_at: delivery.due_at.toISOString(),
    missed_at: delivery.missed_at.toISOString(),
    logical_date: delivery.logical_date?.toISOString() ?? null,
    /** When this was told, which may be later. */
    run_state: delivery.run_state,
  };
}

export function missSubject(delivery: TakenDelivery): string {
  return `Deadline missed: ${subjectOf(delivery)}`;
}

export function missText(delivery: TakenDelivery): string {
  const { due_at: dueAt, logical_date: date, missed_at: missedAt } = delivery;
  return [
    `${subjectOf(delivery)} had not succeeded when it was due.`,
    "",
    `DAG: ${delivery.dag_id}`,
    `Run: ${delivery.run_id}`,
    ...(delivery.task_id === "" ? [] : [`Task: ${delivery.task_id}`]),
    ...(date === null ? [] : [`Logical date: ${date.toISOString()}`]),
    `Due: ${dueAt.toISOString()} (counted from: ${FROM[delivery.counts_from] ?? delivery.counts_from})`,
    `Found missed: ${missedAt.toISOString()}`,
    `State of the run now: ${delivery.run_state}`,
    "",
  ].join("\n");
}

const FROM: Readonly<Record<string, string>> = {
  queued: "the moment the run was queued",
  logicalDate: "the logical date",
  start: "the start of the run",
  average: "the start of the run and the average of the last ones",
};

function subjectOf({ dag_id: dagId, run_id: runId, task_id: taskId }: TakenDelivery): string {
  return taskId === ""
    ? `run "${runId}" of DAG "${dagId}"`
    : `task "${taskId}" in run "${runId}" of DAG "${dagId}"`;
}
