/** What a running task may read, answered from the database by the process that supervises it. */
import { setTimeout as sleep } from "node:timers/promises";
import type { TaskServices } from "../execute/contract.ts";
import { isLatestRun, type Known } from "../model/index.ts";
import { EngineError, messageOf } from "../service/errors.ts";
import type { SecretBox } from "../service/secret-box.ts";
import { senderName } from "../signal/sender-name.ts";
import { openConnection } from "../store/connections.ts";
import { CommitUnknownError, type Database, isTransient } from "../store/database.ts";
import { momentAgo } from "../store/engine-conditions.ts";
import { recallSteps, rememberStep } from "../store/journal.ts";
import { readLatestFacts } from "../store/latest-run.ts";
import { loadOutputs } from "../store/run-load.ts";
import { sendSignals } from "../store/signals.ts";
import { signalsByVersion } from "../store/signals-read.ts";
import { findVariable } from "../store/variables.ts";
import { checkEngineTrigger } from "../trigger/engine-triggers.ts";
import { sinceRun } from "../trigger/trigger-call.ts";
import { windowOf } from "./planner.ts";
import { makeTriggeredRun, readRunEnd } from "./triggered-runs.ts";

const PATIENCE_MS = 30_000;

/** @param told Hears what a task has done to others: made a run of another DAG, sent a signal. */
export function taskServices(
  database: Database,
  secretBox: SecretBox,
  told: (news: "runs" | "signals") => void = () => {},
): TaskServices {
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
        return await checkEngineTrigger(database, call, await momentAgo(database, agoMs));
      } catch (error) {
        const code = (error as { code?: unknown }).code;
        // What was found out is for the task to know; what went wrong on the way is not.
        if (code !== "EXTERNAL_TASK_FAILED") throw error;
        throw new EngineError(code, messageOf(error));
      }
    },
    async send({ namespace, key, value }, from) {
      const [sent] = await sendSignals(database, [{ namespace, key, value, sender: senderName(from) }]);
      told("signals");
      return { version: sent?.id ?? 0 };
    },
    signals: (versions) => patiently(() => signalsByVersion(database, versions)),
    recall: (of) => patiently(() => recallSteps(database, of)),
    async remember(of, step) {
      if (await patiently(() => rememberStep(database, of, step))) return;
      throw new EngineError("TASK_ATTEMPT_SUPERSEDED", "This attempt is no longer the current one.");
    },
    async triggerRun(request, by) {
      const make = () => database.transaction((tx) => makeTriggeredRun(tx, request, by));
      const result = await patiently(make);
      if (result.created) told("runs");
      return result;
    },
    runEnd: (request) => patiently(() => readRunEnd(database, request, (...of) => services.output(...of))),
    isLatest: (dagRunId) => patiently(() => isLatest(database, dagRunId)),
  };
  return services;
}

/** By the database's clock, and by what the schedule says now. */
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

/** What a step has done must not be done again because the database was away for a moment. Only for what may be repeated. */
async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (let waitMs = 50; ; waitMs = Math.min(2 * waitMs, 1_000)) {
    try {
      return await ask();
    } catch (error) {
      const isRepeatable = isTransient(error) || error instanceof CommitUnknownError;
      if (!isRepeatable || performance.now() > deadline) throw error;
      await sleep(waitMs);
    }
  }
}
