/** Ends that a worker reports without a task process. */
import type { Json } from "@tradewind/sdk/manifest";
import type { ErrorFacts } from "@tradewind/sdk/program";
import { errorFacts } from "../attempt/end-errors.ts";
import type { Assignment } from "../contract.ts";

type EndContent = Readonly<Record<string, Json>>;

/** It was cancelled between two claims of it by the same worker. */
export function unstartedEnd(assignment: Assignment): EndContent {
  if (assignment.kind === "attempt") return { outcome: { kind: "cancelled" } };
  return failed(assignment, errorFacts("EXECUTOR_STOPPED", "It was cancelled before it started."));
}

/** The API rejects the content of its end, e.g. because it is too large. */
export function rejectedEnd(assignment: Assignment, reason: Error): EndContent {
  const message = `It has ended, but the API server rejected the report of its end: ${reason.message}`;
  return failed(assignment, errorFacts("TASK_END_REJECTED", message));
}

function failed({ kind }: Assignment, error: ErrorFacts): EndContent {
  const facts = error as unknown as Json;
  return kind === "attempt" ? { outcome: { kind: "failed", error: facts, retry: true } } : { error: facts };
}
