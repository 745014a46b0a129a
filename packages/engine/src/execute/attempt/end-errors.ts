/** The errors of jobs that the engine ended, or whose process died. */
import type { ErrorFacts } from "@tradewind/sdk/program";
import { durationText } from "@tradewind/sdk/wording";
import { PackageError } from "../../code/required-packages.ts";
import { messageOf } from "../../service/errors.ts";
import type { ChildEnd } from "./child-end.ts";

/** The name of errors of jobs that were not started. */
const DISPATCH_ERROR = "DispatchError";

export function errorFacts(code: string, message: string, stack: string | null = null): ErrorFacts {
  return { name: "TaskError", message, stack, code };
}

/** For a job whose bundle or packages this machine lacks. */
export function dispatchFacts(reason: unknown): ErrorFacts {
  const code = reason instanceof PackageError ? reason.code : "TASK_NOT_DISPATCHED";
  return { name: DISPATCH_ERROR, message: messageOf(reason), stack: null, code };
}

export function timeoutFacts(subject: string, limitMs: number, stack: string | null = null): ErrorFacts {
  return errorFacts("TASK_TIMEOUT", `${subject} exceeded its timeout of ${durationText(limitMs)}.`, stack);
}

export function memoryFacts(subject: string, limit: { limitMb: number; usedMb: number }): ErrorFacts {
  return errorFacts(
    "TASK_OUT_OF_MEMORY",
    `${subject} used ${limit.usedMb} MB of memory; its limit is ${limit.limitMb} MB.`,
  );
}

export function protocolFacts(subject: string, what: string): ErrorFacts {
  return errorFacts(
    "TASK_PROCESS_DIED",
    `The engine killed the process of ${subject}: it ${what} over the engine's own channel, so that it could not report its end. Do not write to file descriptors 3 and 4 in a task.`,
  );
}

export function unansweredFacts(subject: string): ErrorFacts {
  return errorFacts(
    "TASK_PROCESS_DIED",
    `${subject} ended without an answer: return "NONE", "START", "RESTART" or "STOP".`,
  );
}

export function deathFacts(
  subject: string,
  { errorTail, exit }: Pick<ChildEnd, "errorTail" | "exit">,
): ErrorFacts {
  const { code, signal } = exit ?? { code: null, signal: null };
  const how = signal === null ? `exit code ${code}` : `signal ${signal}`;
  const words = errorTail.length === 0 ? "" : ` Last lines on stderr:\n${errorTail.join("\n")}`;
  if (errorTail.some((line) => line.includes("heap out of memory"))) {
    return errorFacts("TASK_OUT_OF_MEMORY", `${subject} filled its JavaScript heap (${how}).${words}`);
  }
  const hint =
    signal === "SIGKILL"
      ? " The engine did not kill it: perhaps the operating system did, out of memory."
      : code === 0
        ? " Return from the task instead of calling process.exit: only a return counts as a success."
        : "";
  return errorFacts(
    "TASK_PROCESS_DIED",
    `The process of ${subject} ended with ${how} before the task did.${hint}${words}`,
  );
}
