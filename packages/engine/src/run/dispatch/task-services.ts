/** Answers the requests of running tasks from the database. */
import type { Json, TriggerCall } from "@tradewind/sdk/manifest";
import type { TaskServices } from "../../execute/contract.ts";
import { windowOf } from "../../model/calendar/planner.ts";
import { isLatestRun, type Known } from "../../model/index.ts";
import { senderName } from "../../model/signal/sender-name.ts";
import { sinceRun } from "../../model/trigger/trigger-call.ts";
import type { SecretBox } from "../../secret/secret-box.ts";
import { EngineError, messageOf } from "../../service/errors.ts";
import { CommitUnknownError, type Database, isTransient } from "../../store/database/database.ts";
import { retryTransient } from "../../store/database/transient-retry.ts";
import { readLatestFacts } from "../../store/plan/latest-run.ts";
import { loadOutputs } from "../../store/run/run-load.ts";
import { openConnection } from "../../store/settings/connections.ts";
import { findVariable } from "../../store/settings/variables.ts";
import { sendSignals } from "../../store/signal/signals.ts";
import { signalsByVersion } from "../../store/signal/signals-read.ts";
import { recordedSteps, recordStep } from "../../store/task/journal.ts";
import { momentAgo } from "../../store/trigger/engine-conditions.ts";
import { makeTriggeredRun, readRunEnd } from "./triggered-runs.ts";

export interface TaskServicesOptions {
  readonly database: Database;
  readonly secretBox: SecretBox;
  /** Evaluates a trigger that waits for something in the engine's database. undefined: it would not fire now. */
  readonly check: (database: Database, call: TriggerCall, since: Date) => Promise<Json | undefined>;
  /** Called when a task has created a run of another DAG or sent a signal. */
  readonly onNews?: (news: "runs" | "signals") => void;
}

export function taskServices(options: TaskServicesOptions): TaskServices {
  const { check, database, onNews = () => {}, secretBox } = options;
  const services: TaskServices = {
    async output(dagRunId, taskId, mapIndex): Promise<Known | undefined> {
      const rows = await loadOutputs(database, [{ runId: dagRunId, taskId }]);
      if (mapIndex !== null) return rows.find((row) => row.map_index === mapIndex)?.value;
      const only = rows.find((row) => row.map_index === -1);
      if (only || rows.length === 0) return only?.value;
      return rows.map((row) => row.value);
    },
    async variable(key) {
      return (await findVariable(database, secretBox, key))?.value;
    },
    connection: (id) => openConnection(database, secretBox, id),
    async check(trigger, agoMs, runStartedAt) {
      const call = sinceRun(trigger, runStartedAt);
      try {
        return await check(database, call, await momentAgo(database, agoMs));
      } catch (error) {
        const code = (error as { code?: unknown }).code;
        // The result is for the task; details of other errors are not.
        if (code !== "EXTERNAL_TASK_FAILED") throw error;
        throw new EngineError(code, messageOf(error));
      }
    },
    async send({ namespace, key, value }, from) {
      const [sent] = await sendSignals(database, [{ namespace, key, value, sender: senderName(from) }]);
      onNews("signals");
      return { version: sent?.id ?? 0 };
    },
    signals: (versions) => patiently(() => signalsByVersion(database, versions)),
    recall: (of) => patiently(() => recordedSteps(database, of)),
    async remember(of, step) {
      if (await patiently(() => recordStep(database, of, step))) return;
      throw new EngineError("TASK_ATTEMPT_SUPERSEDED", "This attempt is no longer the current one.");
    },
    async triggerRun(request, by) {
      const make = () => database.transaction((tx) => makeTriggeredRun(tx, request, by));
      const result = await patiently(make);
      if (result.created) onNews("runs");
      return result;
    },
    runEnd: (request) => patiently(() => readRunEnd(database, request, (...of) => services.output(...of))),
    isLatest: (dagRunId) => patiently(() => isLatest(database, dagRunId)),
  };
  return services;
}

/** By the clock of the database and the present schedule. */
async function isLatest(database: Database, dagRunId: number): Promise<boolean> {
  const row = await readLatestFacts(database, dagRunId);
  if (row === undefined) return true;
  const { manifest, next_logical_date: nextDate, next_run_after: nextAfter } = row;
  return isLatestRun(
    {
      dagId: row.dag_id,
      runType: row.run_type,
      logicalDate: row.logical_date?.getTime() ?? null,
      intervalEnd: row.interval_end?.getTime() ?? null,
      schedule: manifest.schedule,
      window: windowOf(manifest),
      jitterMs: manifest.jitterMs ?? 0,
      hasLater: row.has_later,
      next:
        nextDate === null || nextAfter === null
          ? null
          : { logicalDate: nextDate.getTime(), runAfter: nextAfter.getTime() },
    },
    row.now,
  );
}

/** Retries while the database is unavailable, so that a finished step is not repeated. Only for idempotent calls. */
function patiently<T>(ask: () => Promise<T>): Promise<T> {
  return retryTransient(ask, (error) => isTransient(error) || error instanceof CommitUnknownError);
}
