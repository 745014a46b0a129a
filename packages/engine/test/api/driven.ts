/** A signal-driven DAG, and rows of its runs as their owner writes them. */
import type { DagManifest, SignalCondition, SignalRule } from "@tradewind/sdk/manifest";
import { Drive, type Fact, RuleSet } from "../../src/model/index.ts";
import { openDrives } from "../../src/store/drive/run-drives.ts";
import { startCalls } from "../../src/store/drive/run-starts.ts";
import { type Installation, manifestOf } from "./installation.ts";

export function listensTo(key: string, equals?: string): SignalCondition {
  const value = equals === undefined ? null : { value: equals };
  return { kind: "signal", namespace: "default", key, where: null, equals: value, inRun: false };
}

function rule(action: SignalRule["action"], when: SignalCondition, once = false): SignalRule {
  return { action, when, once };
}

/**
 * - `load` is an ordinary task, `train` waits for it and for two signals;
 * - `serve` is a streaming task; `report` has ticks; `ask` has an `onSignal` handler.
 */
export function drivenManifest(dagId: string): DagManifest {
  return manifestOf(
    dagId,
    [
      { taskId: "load" },
      {
        taskId: "train",
        upstream: ["load"],
        rules: [
          rule("start", { kind: "all", of: [listensTo("a"), listensTo("b")] }),
          rule("stop", listensTo("c"), true),
        ],
      },
      { taskId: "serve", lifetime: "streaming", rules: [rule("restart", listensTo("mode", "open"))] },
      { taskId: "report", every: { kind: "interval", everyMs: 3_600_000, style: "trigger" } },
      { taskId: "ask", reacts: [{ namespace: "default", key: "ask.*" }] },
    ],
    { stop: listensTo("closed") },
  );
}

export const STARTED_AT = new Date("2026-01-01T10:00:00.000Z");

/** Stores the drive of a run after these changes. */
export async function drive(
  tw: Installation,
  dagRunId: number,
  happens: (drive: Drive, tell: (key: string, value?: string) => void) => void,
): Promise<void> {
  const [run] = await tw.sql<{ dag_id: string; run_id: string; manifest: DagManifest }>(
    `SELECT r.dag_id, r.run_id, v.manifest FROM dag_run r JOIN dag_version v ON v.id = r.version_id WHERE r.id = $1`,
    [dagRunId],
  );
  const { dag_id: dagId, manifest, run_id: runId } = run!;
  const driven = new Drive({
    manifest,
    rules: new RuleSet(manifest),
    run: { dagId, runId, conf: {} },
    startedAt: STARTED_AT.getTime(),
  });
  let version = 0;
  happens(driven, (key, value = "") => {
    version++;
    const heard: Fact = { kind: "signal", namespace: "default", key, value, version, from: null };
    driven.receive(heard);
  });
  await openDrives(tw.database, [dagRunId]);
  await tw.sql("UPDATE run_drive SET state = $2 WHERE dag_run_id = $1", [
    dagRunId,
    JSON.stringify(driven.drainState() ?? {}),
  ]);
  await tw.sql("DELETE FROM run_start WHERE dag_run_id = $1", [dagRunId]);
  await tw.database.pipeline(startCalls([{ runId: dagRunId, starts: driven.drainStarts() }]));
}
