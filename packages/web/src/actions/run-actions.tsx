/** Clear, cancel, mark and delete runs: one, or a selection. */
import { type ReactNode, useState } from "react";
import { Segmented } from "../ui/tabs.tsx";
import { ActionDialog, Option, type Undo } from "./action-dialog.tsx";
import { apiPath, sendAll } from "./api-call.ts";
import { ChangeList } from "./change-list.tsx";
import type { Request } from "./command-text.ts";
import { type RunRef, runsCommands } from "./commands.ts";
import { type Instance, runsText, showInstances, statesAgain, tasksText } from "./instance-list.tsx";

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
  readonly runs: readonly ChangedRun[];
  readonly onClose: () => void;
}) {
  if (action === "clear" || action === "retry")
    return <ClearRuns runs={runs} isRetry={action === "retry"} onClose={onClose} />;
  if (action === "cancel") return <CancelRuns runs={runs} onClose={onClose} />;
  if (action === "mark") return <MarkRuns runs={runs} onClose={onClose} />;
  return <DeleteRuns runs={runs} onClose={onClose} />;
}

interface ChangedRun extends RunRef {
  readonly state: string;
}

interface RunsProps<Run extends RunRef = RunRef> {
  readonly runs: readonly Run[];
  readonly onClose: () => void;
}

function titleOf(verb: string, runs: readonly RunRef[]): string {
  return runs.length === 1 ? `${verb} ${runs[0]!.runId}` : `${verb} ${runsText(runs.length)}`;
}

/** @param reach A choice of the runs, if there is one. */
export function ClearRuns({
  onClose,
  isRetry,
  reach,
  runs,
}: RunsProps & { readonly isRetry: boolean; readonly reach?: ReactNode }) {
  const [onlyFailed, setOnlyFailed] = useState(isRetry);
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
      show={showInstances}
      plan={{
        preview: (signal) => listed(calls(true), signal),
        previewKey: ["clear runs", runs, onlyFailed, latest],
        calls: () => calls(false),
        cli: () =>
          runsCommands(runs, "clear", [
            ...(onlyFailed ? ["--only-failed"] : []),
            ...(latest ? ["--latest-version"] : []),
          ]),
        label: (instances) =>
          `Clear ${tasksText(instances.length)}${runs.length > 1 ? ` of ${runsText(runs.length)}` : ""}`,
        done: (instances) => `Cleared ${tasksText(instances.length)}`,
      }}
      options={
        <>
          {reach}
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
      show={showInstances}
      plan={{
        preview: (signal) => listed(unfinishedCalls(runs), signal),
        previewKey: ["cancel runs", runs],
        calls: () =>
          runs.map(({ dagId, runId }) => ({
            method: "POST",
            path: apiPath`/dags/${dagId}/dagRuns/${runId}/cancel`,
          })),
        cli: () => runsCommands(runs, "cancel", []),
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

function MarkRuns({ onClose, runs }: RunsProps<ChangedRun>) {
  const [state, setState] = useState<Marked>(
    runs.every((run) => run.state === "success") ? "failed" : "success",
  );
  const changed = runs.filter((run) => run.state !== state);
  const same = runs.length - changed.length;
  return (
    <ActionDialog
      title={titleOf("Mark", runs)}
      explanation={`Ends ${runs.length === 1 ? "the run" : "the runs"} in this state.`}
      emptyText={
        changed.length > 0
          ? `All tasks have ended: only the state of the ${changed.length === 1 ? "run" : "runs"} changes.`
          : `Nothing changes: ${runs.length === 1 ? "the run is" : "the runs are"} ${state} already.`
      }
      onClose={onClose}
      show={(stopped: readonly Instance[]) => (
        <div className="flex flex-col gap-2">
          <p>These tasks have not ended. They are stopped.</p>
          {showInstances(stopped)}
        </div>
      )}
      plan={{
        preview: (signal) => listed(unfinishedCalls(changed), signal),
        previewKey: ["mark runs", changed],
        calls: () => changed.map((run) => markCall(run, state)),
        cli: () => changed.flatMap((run) => runsCommands([run], "mark", [state])),
        label: () => `Mark ${runs.length === 1 ? "this run" : runsText(changed.length)} as ${state}`,
        done: () => `Marked ${runsText(changed.length)} as ${state}`,
        undo: (stopped) => (stopped.length === 0 ? markBack(changed, state) : null),
        mayBeEmpty: true,
      }}
      options={
        <>
          <Segmented label="New state" options={MARKS} value={state} onChange={setState} />
          {same > 0 && changed.length > 0 && (
            <span className="self-center text-muted">
              {runsText(same)} {same === 1 ? "is" : "are"} {state} already
            </span>
          )}
        </>
      }
    />
  );
}

function markCall({ dagId, runId }: RunRef, state: string): Request {
  return { method: "PATCH", path: apiPath`/dags/${dagId}/dagRuns/${runId}`, body: { state } };
}

/** Possible for runs that had ended, and only while nothing else has changed them. */
function markBack(runs: readonly ChangedRun[], marked: Marked): Undo | null {
  if (!runs.every(({ state }) => state === "success" || state === "failed")) return null;
  const run = async () => {
    const now = await sendAll<{ readonly dag_run_id: string; readonly state: string }>(
      runs.map((run) => ({ method: "GET", path: markCall(run, "").path })),
    );
    const changed = now.find(({ state }) => state !== marked);
    if (changed !== undefined) throw new Error(`Not undone: ${changed.dag_run_id} is ${changed.state} now.`);
    await sendAll(runs.map((each) => markCall(each, each.state)));
  };
  const states = runs.map(({ state }) => state);
  return { run, done: statesAgain(states, runsText) };
}

function DeleteRuns({ onClose, runs }: RunsProps) {
  return (
    <ActionDialog
      title={titleOf("Delete", runs)}
      danger
      explanation="Deletes the run with its tasks, outputs and logs. This cannot be undone. A run that has not ended has to be cancelled first."
      emptyText=""
      onClose={onClose}
      show={(items) => (
        <ChangeList
          label="What will be deleted"
          items={items.map(({ dagId, runId }) => ({ key: `${dagId} ${runId}`, name: runId, note: dagId }))}
        />
      )}
      plan={{
        preview: async () => runs,
        previewKey: ["delete runs", runs],
        calls: () =>
          runs.map(({ dagId, runId }) => ({
            method: "DELETE",
            path: apiPath`/dags/${dagId}/dagRuns/${runId}`,
          })),
        cli: () => runs.flatMap((run) => runsCommands([run], "delete", [])),
        label: () => `Delete ${runs.length === 1 ? "this run" : runsText(runs.length)}`,
        done: () => `Deleted ${runsText(runs.length)}`,
      }}
    />
  );
}
