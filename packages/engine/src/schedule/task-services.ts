/** What a running task may read, answered from the database by the process that supervises it. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Json } from "@tradewind/sdk/manifest";
import type { TriggerRunRequest } from "@tradewind/sdk/program";
import type { TaskServices } from "../execute/contract.ts";
import { EngineError, messageOf } from "../service/errors.ts";
import type { SecretBox } from "../service/secret-box.ts";
import { senderName } from "../signal/sender-name.ts";
import { openConnection } from "../store/connections.ts";
import { type Database, isTransient, type Transaction } from "../store/database.ts";
import { momentAgo } from "../store/engine-conditions.ts";
import { recallSteps, rememberStep } from "../store/journal.ts";
import { findDag } from "../store/list/dags.ts";
import { runEdits } from "../store/run-edit.ts";
import { loadOutputs } from "../store/run-load.ts";
import { sendSignals } from "../store/signals.ts";
import { signalsByVersion } from "../store/signals-read.ts";
import { findVariable } from "../store/variables.ts";
import { checkEngineTrigger } from "../trigger/engine-triggers.ts";
import { sinceRun } from "../trigger/trigger-call.ts";

const PATIENCE_MS = 30_000;

/** @param told Hears what a task has done to others: made a run of another DAG, sent a signal. */
export function taskServices(
  database: Database,
  secretBox: SecretBox,
  told: (news: "runs" | "signals") => void = () => {},
): TaskServices {
  return {
    async output(dagRunId, taskId, mapIndex): Promise<Json | undefined> {
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
    async triggerRun(request) {
      const result = await database.transaction((tx) => createRun(tx, request));
      if (result.created) told("runs");
      return result;
    },
  };
}

/** What a step has done must not be done again because the database was away for a moment. Only for what may be repeated. */
async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (let waitMs = 50; ; waitMs = Math.min(2 * waitMs, 1_000)) {
    try {
      return await ask();
    } catch (error) {
      if (!isTransient(error) || performance.now() > deadline) throw error;
      await sleep(waitMs);
    }
  }
}

/** The run id was made by the task, the same in every attempt of a try: found again, it is that run, not another one. */
async function createRun(
  tx: Transaction,
  request: TriggerRunRequest,
): Promise<{ runId: string; created: boolean }> {
  const { dagId, runId, logicalDate } = request;
  const result = await runEdits.createRun(tx, {
    dagId,
    runId,
    logicalDate: logicalDate === null ? null : new Date(logicalDate),
    interval: null,
    runAfter: null,
    conf: request.conf as { readonly [key: string]: Json },
    note: null,
    triggeredBy: "operator",
    triggeringUser: null,
  });
  if (result.kind === "created") {
    // A misfit takes the run back with it. One that was found is there, whatever its DAG's params say now.
    await checkConf(tx, request);
    return { runId, created: true };
  }
  if (result.kind === "conflict" && result.on === "run_id") return { runId, created: false };
  if (result.kind === "conflict")
    throw new EngineError(
      "TRIGGERED_RUN_EXISTS",
      `DAG "${dagId}" already has the run "${result.existingRunId}" for ${logicalDate}. Trigger it without a logical date, or with another.`,
    );
  throw new EngineError(
    "TRIGGERED_DAG_UNKNOWN",
    `There is no DAG "${dagId}" that could be run. Check its id, and that its file still gives it.`,
  );
}

/** As the API does, before anybody sees the run: one that its DAG's params refuse would only fail, task by task. */
async function checkConf(tx: Transaction, { conf, dagId }: TriggerRunRequest): Promise<void> {
  const dag = await findDag(tx, dagId);
  const schema = dag?.manifest?.paramsSchema ?? null;
  if (dag === undefined || dag.version_id === null || schema === null) return;
  // Its validator is as large as all the rest of a scheduler, and few need it.
  const { ParamsCheck } = await import("../api/params-check.ts");
  try {
    new ParamsCheck().check({ id: dag.version_id, schema }, conf);
  } catch (error) {
    throw new EngineError(
      "TRIGGERED_CONF_INVALID",
      `The conf does not fit the params of DAG "${dagId}": ${messageOf(error)}.`,
    );
  }
}
