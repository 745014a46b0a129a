/**
 * One change to many runs, one request each. An error about one run does not stop the others; an unreachable server does.
 * There is no rollback, so the caller reports which runs were changed and which were not.
 */
import { CliError } from "../errors.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";

export interface RunRefusal {
  readonly dag_run_id: string;
  readonly code: string;
  readonly message: string;
}

export interface Changes {
  readonly done: readonly string[];
  /** Runs that were already in the target state. */
  readonly unneeded: readonly string[];
  readonly refused: readonly RunRefusal[];
  /** Not tried because of an earlier error or Ctrl-C. */
  readonly left: readonly string[];
  readonly exit: ExitCode;
}

export interface ChangeOptions {
  readonly signal: AbortSignal;
  /** Resolves to false if there was nothing to change. */
  readonly change: (runId: string) => Promise<boolean>;
  readonly onProgress: (ended: number) => void;
}

export async function changeRuns(runIds: readonly string[], options: ChangeOptions): Promise<Changes> {
  const done: string[] = [];
  const unneeded: string[] = [];
  const refused: RunRefusal[] = [];
  const outcome = (left: readonly string[], exit: ExitCode) => ({ done, unneeded, refused, left, exit });
  for (const [index, runId] of runIds.entries()) {
    if (options.signal.aborted) return outcome(runIds.slice(index), EXIT.interrupted);
    try {
      ((await options.change(runId)) ? done : unneeded).push(runId);
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      refused.push({ dag_run_id: runId, code: error.code, message: error.message });
      const isAboutRun = error.exit !== EXIT.server && error.exit !== EXIT.auth;
      if (!isAboutRun) return outcome(runIds.slice(index + 1), error.exit);
    }
    options.onProgress(index + 1);
  }
  return outcome([], refused.length === 0 ? EXIT.ok : EXIT.failed);
}
