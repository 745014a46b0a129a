/** Clear, cancel, mark and delete runs: one, or a selection. */
import { useState } from "react";
import { Segmented } from "../ui/tabs.tsx";
import { ActionDialog, Option } from "./action-dialog.tsx";
import { apiPath, sendAll } from "./api-call.ts";
import type { Request } from "./command-text.ts";
import { type RunRef, runsCommands } from "./commands.ts";
import { type Instance, runsText, tasksText } from "./instance-list.tsx";

export type RunAction = "clear" | "retry" | "cancel" | "mark" | "delete";

interface InstanceList {
  readonly task_instances: readonly Instance[];
}

async function listed(calls: readonly Request[], signal: AbortSignal): Promise<Instance[]> {
  const answers = await sendAll<InstanceList>(calls, signal);
  return answers.flatMap(({ task_instances }) => task_instances);
}

const UNFINISHED = [
  "none",
  "scheduled",
  "queued",
  "running",
  "restarting",
  "deferred",
  "up_for_retry",
  "up_for_reschedule",
];

/** The tasks of runs that have not ended: what a cancelled run stops. */
function unfinishedCalls(runs: readonly RunRef[]): Request[] {
  const states = UNFINISHED.map((state) => `state=${state}`).join("&");
  return runs.map(({ dagId, runId }) => ({
    method: "GET",
    path: `${apiPath`/dags/${dagId}/dagRuns/${runId}/taskInstances`}?limit=200&${states}`,
  }));
}

export function RunActionDialog({
  action,
  runs,
  onClose,
}: {
  readonly action: RunAction;
  readonly runs: readonly RunRef[];
  readonly onClose: () => void;
}) {
  if (action === "clear" || action === "retry")
    return <ClearRuns runs={runs} onlyFailed={action === "retry"} onClose={onClose} />;
  if (action === "cancel") return <CancelRuns runs={runs} onClose={onClose} />;
  if (action === "mark") return <MarkRuns runs={runs} onClose={onClose} />;
  return <DeleteRuns runs={runs} onClose={onClose} />;
}

interface RunsProps {
  readonly runs: readonly RunRef[];
  readonly onClose: () => void;
}

function titleOf(verb: string, runs: readonly RunRef[]): string {
  return runs.length === 1 ? `${verb} ${runs[0]!.runId}` : `${verb} ${runsText(runs.length)}`;
}

function ClearRuns({ onClose, onlyFailed: first, runs }: RunsProps & { readonly onlyFailed: boolean }) {
  const [onlyFailed, setOnlyFailed] = useState(first);
  const [latest, setLatest] = useState(false);
  const calls = (isDry: boolean): Request[] =>
    runs.map(({ dagId, runId }) => ({
      method: "POST",
      path: apiPath`/dags/${dagId}/dagRuns/${runId}/clear`,
      body: { dry_run: isDry, only_failed: onlyFailed, run_on_latest_version: latest },
    }));
  return (
    <ActionDialog
      title={titleOf("Clear", runs)}
      explanation="Cleared tasks run again, in order. Their earlier tries and logs are kept."
      emptyText="No task would be cleared with these options."
      onClose={onClose}
      plan={{
        preview: (signal) => listed(calls(true), signal),
        previewKey: ["clear runs", runs, onlyFailed, latest],
        calls: calls(false),
        cli: runsCommands(runs, "clear", [
          ...(onlyFailed ? ["--only-failed"] : []),
          ...(latest ? ["--latest-version"] : []),
        ]),
        label: (instances) =>
          `Clear ${tasksText(instances.length)}${runs.length > 1 ? ` of ${runsText(runs.length)}` : ""}`,
        done: (instances) => `Cleared ${tasksText(instances.length)}`,
      }}
      options={
        <>
          <Option checked={onlyFailed} onChange={setOnlyFailed}>
            Only failed tasks, and those that did not run because of them
          </Option>
          <Option checked={latest} onChange={setLatest}>
            On the current version of the DAG
          </Option>
        </>
      }
    />
  );
}

function CancelRuns({ onClose, runs }: RunsProps) {
  return (
    <ActionDialog
      title={titleOf("Cancel", runs)}
      danger
      explanation="Stops the tasks below and ends the run as failed. Teardowns still run. Clear the run to continue it."
      emptyText="No task has to be stopped."
      onClose={onClose}
      plan={{
        preview: (signal) => listed(unfinishedCalls(runs), signal),
        previewKey: ["cancel runs", runs],
        calls: runs.map(({ dagId, runId }) => ({
          method: "POST",
          path: apiPath`/dags/${dagId}/dagRuns/${runId}/cancel`,
        })),
        cli: runsCommands(runs, "cancel", []),
        label: () => `Cancel ${runs.length === 1 ? "this run" : runsText(runs.length)}`,
        done: () => `Cancelled ${runsText(runs.length)}`,
        mayBeEmpty: true,
      }}
    />
  );
}

type Marked = "success" | "failed";
const MARKS: readonly { readonly value: Marked; readonly label: string }[] = [
  { value: "success", label: "Success" },
  { value: "failed", label: "Failed" },
];

function MarkRuns({ onClose, runs }: RunsProps) {
  const [state, setState] = useState<Marked>("success");
  return (
    <ActionDialog
      title={titleOf("Mark", runs)}
      explanation="Ends the run in this state. The tasks below have not ended: they are stopped."
      emptyText="All tasks have ended: only the state of the run changes."
      onClose={onClose}
      plan={{
        preview: (signal) => listed(unfinishedCalls(runs), signal),
        previewKey: ["mark runs", runs],
        calls: runs.map(({ dagId, runId }) => ({
          method: "PATCH",
          path: apiPath`/dags/${dagId}/dagRuns/${runId}`,
          body: { state },
        })),
        cli: [],
        label: () => `Mark ${runs.length === 1 ? "this run" : runsText(runs.length)} as ${state}`,
        done: () => `Marked ${runsText(runs.length)} as ${state}`,
        mayBeEmpty: true,
      }}
      options={<Segmented label="New state" options={MARKS} value={state} onChange={setState} />}
    />
  );
}

function DeleteRuns({ onClose, runs }: RunsProps) {
  return (
    <ActionDialog
      title={titleOf("Delete", runs)}
      danger
      explanation="Deletes the run with its tasks, outputs and logs. This cannot be taken back. A run that has not ended has to be cancelled first."
      emptyText=""
      onClose={onClose}
      plan={{
        preview: async () => [],
        previewKey: ["delete runs"],
        calls: runs.map(({ dagId, runId }) => ({
          method: "DELETE",
          path: apiPath`/dags/${dagId}/dagRuns/${runId}`,
        })),
        cli: runs.flatMap((run) => runsCommands([run], "delete", [])),
        label: () => `Delete ${runs.length === 1 ? "this run" : runsText(runs.length)}`,
        done: () => `Deleted ${runsText(runs.length)}`,
        mayBeEmpty: true,
      }}
    />
  );
}
