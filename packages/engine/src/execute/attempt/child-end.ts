import type { Assignment } from "../contract.ts";
import { dispatchFacts } from "./end-errors.ts";
import type { Interference } from "./interference.ts";
import type { EndedMessage, JobOutcome } from "./protocol.ts";

/** How a job ended in its child process, as its supervisor saw it: the child's report, or its exit without a report. */
export interface ChildEnd {
  /** What the engine did to the job before its end. */
  readonly interference: Interference | null;
  readonly report: EndedMessage | null;
  /** Null if there is a report, or if no process had the job. */
  readonly exit: { readonly code: number | null; readonly signal: string | null } | null;
  /** The last lines on stderr, if there is no report. */
  readonly errorTail: readonly string[];
}

/** The end of a job whose bundle this machine cannot provide. */
export function endWithoutBundle({ id, kind }: Assignment, reason: unknown): ChildEnd {
  const error = dispatchFacts(reason);
  const outcome: JobOutcome =
    kind === "attempt" ? { kind: "failed", error, retry: true } : { ok: false, error };
  const report = { k: "ended", id, outcome, logged: 0, dropped: 0, aborted: false, unclean: null } as const;
  return { interference: null, report, exit: null, errorTail: [] };
}

/** The end of a job that no process had. */
export function endBeforeStart(interference: Interference): ChildEnd {
  return { interference, report: null, exit: null, errorTail: [] };
}
