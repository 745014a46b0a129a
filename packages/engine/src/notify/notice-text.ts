/** The content of a delivery: the value of a signal, the body of a webhook, the text of a mail. */
import type { Json } from "@tradewind/sdk/manifest";
import type { TakenDelivery } from "../store/notify/deliveries.ts";

type Facts = { readonly [key: string]: Json };

/** The same for every attempt, and unique per delivery: a receiver can drop a message that it has seen. */
export function idempotencyKey({ id, occurred_at: at }: TakenDelivery): string {
  return `${id}-${at.getTime()}`;
}

/** The default value of a signal. */
export function noticeValue({ cause, event, occurred_at: at, report }: TakenDelivery): Facts {
  const moment = at.toISOString();
  if (event === "deadline") return { ...report, missedAt: moment };
  return {
    ...report,
    endedAt: report["endedAt"] ?? moment,
    cause: cause === null ? null : { ...cause },
  };
}

/** The body of a webhook, in the spelling of the REST API. `runUrl`: null if no public address is configured. */
export function noticeDocument(delivery: TakenDelivery, runUrl: string | null): Facts {
  const { event, ...said } = noticeValue(delivery);
  return {
    event: event ?? null,
    delivery: delivery.id,
    attempt: delivery.attempts,
    ...spelled(said),
    /** At the time of sending, which may be later. */
    run_state: delivery.run_state,
    run_url: runUrl,
  };
}

export function noticeSubject(delivery: TakenDelivery): string {
  const { report } = delivery;
  const [, what = ""] = text(report["event"]).split(".");
  const title =
    delivery.event === "deadline" ? "Deadline missed" : `${what[0]?.toUpperCase()}${what.slice(1)}`;
  return `${title}: ${subjectOf(delivery)}`;
}

/** One line for each fact. */
export function noticeText(delivery: TakenDelivery, runUrl: string | null): string {
  const said = noticeValue(delivery);
  const { cause } = delivery;
  const line = (title: string, value: Json | undefined) =>
    value === null || value === undefined || value === "" ? [] : [`${title}: ${text(value)}`];
  const after = FROM[text(said["after"])] ?? text(said["after"]);
  const index = Number(said["mapIndex"] ?? -1);
  return [
    sentenceOf(delivery),
    "",
    ...line("DAG", delivery.dag_id),
    ...line("Run", delivery.run_id),
    ...line("Task", said["taskId"]),
    ...line("Group", said["groupId"]),
    ...(index < 0 ? [] : line("Map index", index)),
    ...line("Try", said["tryNumber"]),
    ...line("State", said["state"]),
    ...line("Reason", said["reason"]),
    ...(cause === null ? [] : line("First failure", `${placeOf(cause)}, try ${cause.tryNumber}`)),
    ...line("Its reason", cause?.reason),
    ...line("Logical date", said["logicalDate"]),
    ...line("Started", said["startedAt"]),
    ...line("Ended", said["endedAt"]),
    ...line("Next try", said["nextTryAt"]),
    ...line("Due", said["dueAt"] === undefined ? null : `${text(said["dueAt"])} (counted from: ${after})`),
    ...line("Found missed", said["missedAt"]),
    ...line("State of the run now", delivery.run_state),
    ...line("Link", runUrl),
    "",
  ].join("\n");
}

const FROM: Readonly<Record<string, string>> = {
  queued: "the time the run was queued",
  logicalDate: "the logical date",
  start: "the start of the run",
  average: "the start of the run and the average of the last ones",
};

const HAPPENED: Readonly<Record<TakenDelivery["event"], string>> = {
  success: "has succeeded",
  failure: "has failed",
  retry: "has failed and will be retried",
  deadline: "had not succeeded when it was due",
};

function sentenceOf(delivery: TakenDelivery): string {
  const subject = subjectOf(delivery);
  return `${subject[0]?.toUpperCase()}${subject.slice(1)} ${HAPPENED[delivery.event]}.`;
}

function subjectOf({ dag_id: dagId, report, run_id: runId }: TakenDelivery): string {
  const { groupId, mapIndex, taskId } = report;
  const run = `run "${runId}" of DAG "${dagId}"`;
  const item = Number(mapIndex ?? -1) < 0 ? "" : `[${text(mapIndex)}]`;
  if (taskId) return `task "${text(taskId)}${item}" in ${run}`;
  return groupId ? `group "${text(groupId)}${item}" in ${run}` : run;
}

function placeOf({ mapIndex, taskId }: { readonly mapIndex: number; readonly taskId: string }): string {
  return mapIndex < 0 ? taskId : `${taskId}[${mapIndex}]`;
}

/** In the spelling of the REST API: `dag_run_id` is the name of a run. */
function spelled(facts: Facts): Facts {
  return Object.fromEntries(
    Object.entries(facts).map(([key, value]) => [
      key === "runId" ? "dag_run_id" : key.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      isFacts(value) ? spelled(value) : value,
    ]),
  );
}

function isFacts(value: Json): value is Facts {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value: Json | undefined): string {
  return value === null || value === undefined ? "" : String(value);
}
