/** Start and end of attempts, as the executor reports them: the database keeps the start of the try, not of the last attempt. */
import type { ExecutorEvent } from "../../packages/engine/src/execute/contract.ts";
import { LocalExecutor } from "../../packages/engine/src/execute/local/local-executor.ts";

export interface AttemptTimes {
  startedAt: number;
  endedAt: number;
}

/** Records the attempts of every executor that is started from now on. */
export function recordAttempts(): ReadonlyMap<string, AttemptTimes> {
  const times = new Map<string, AttemptTimes>();
  const { start } = LocalExecutor.prototype;
  LocalExecutor.prototype.start = function (this: LocalExecutor, report) {
    return start.call(this, (event: ExecutorEvent) => {
      if (event.type === "started") times.set(event.attempt, { startedAt: event.at, endedAt: event.at });
      const known = event.type === "ended" ? times.get(event.attempt) : undefined;
      if (event.type === "ended" && known) known.endedAt = event.at;
      report(event);
    });
  };
  return times;
}
