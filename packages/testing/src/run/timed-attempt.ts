/**
 * One attempt with its time limit. Code in the same process cannot be killed: an attempt that continues after its abort
 * is abandoned, and its later reports are ignored.
 */
import type { ErrorFacts, Program, TaskCall, TaskHost, TaskOutcome } from "@tradewind/sdk/program";
import { durationText } from "@tradewind/sdk/wording";
import { guarded } from "./guarded-call.ts";

export type AttemptCall = Omit<TaskCall, "host"> & { readonly host: Omit<TaskHost, "abort"> };

export interface Limits {
  /** The limit of the whole try, including waits. */
  readonly timeoutMs: number | null;
  /** Fires when it has to stop: then its outcome is ignored, or only its success counts. */
  readonly stop: AbortSignal;
}

export async function timedAttempt(
  program: Program,
  call: AttemptCall,
  { timeoutMs, stop }: Limits,
): Promise<TaskOutcome> {
  const controller = new AbortController();
  const host: TaskHost = { ...call.host, abort: AbortSignal.any([controller.signal, stop]) };
  const subject = `task "${call.taskId}"`;
  const failed = (error: ErrorFacts) => ({ kind: "failed" as const, error, retry: true });
  const attempt = guarded({ host, subject, failed }, (host) => program.run({ ...call, host }));
  if (timeoutMs === null) return attempt;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), Math.max(1, timeoutMs - call.elapsedMs));
  });
  const outcome = await Promise.race([attempt, late]);
  clearTimeout(timer);
  if (outcome !== null) return outcome;
  const error = timeoutFacts(call.taskId, timeoutMs);
  controller.abort(new DOMException(error.message, "TimeoutError"));
  return { kind: "failed", error, retry: true };
}

function timeoutFacts(taskId: string, timeoutMs: number): ErrorFacts {
  return {
    name: "TaskError",
    message: `Task "${taskId}" exceeded its timeout of ${durationText(timeoutMs)}.`,
    stack: null,
    code: "TASK_TIMEOUT",
  };
}
