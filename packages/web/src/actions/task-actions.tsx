/** Clear and mark task instances: one, some of a run, or a selection over many runs. */
import { useState } from "react";
import { Segmented } from "../ui/tabs.tsx";
import { ActionDialog, Option, type Undo } from "./action-dialog.tsx";
import { apiPath, sendAll } from "./api-call.ts";
import type { Request } from "./command-text.ts";
import {
  type ClearOptions,
  clearTasksCommands,
  markTasksCommands,
  perRun,
  type TaskRef,
} from "./commands.ts";
import { type Instance, instanceLabel, showInstances, statesAgain, tasksText } from "./instance-list.tsx";

interface InstanceList {
  readonly task_instances: readonly Instance[];
}

async function previewOf(calls: readonly Request[], signal: AbortSignal): Promise<Instance[]> {
  const answers = await sendAll<InstanceList>(calls, signal);
  const found = answers.flatMap(({ task_instances }) => task_instances);
  return [...new Map(found.map((each) => [each.id, each])).values()];
}

function clearCalls(tasks: readonly TaskRef[], options: ClearOptions, isDry: boolean): Request[] {
  return perRun(tasks).map(({ dagId, runId, tasks: own }) => ({
    method: "POST",
    path: apiPath`/dags/${dagId}/clearTaskInstances`,
    body: {
      dry_run: isDry,
      dag_run_id: runId,
      task_ids: own.map(({ mapIndex, taskId }) =>
        mapIndex === null || mapIndex < 0 ? taskId : [taskId, mapIndex],
      ),
      only_failed: options.onlyFailed,
      include_downstream: options.downstream,
      include_upstream: options.upstream,
      run_on_latest_version: options.latestVersion,
    },
  }));
}

export function ClearTasks({
  tasks,
  onClose,
  latestVersion = false,
}: {
  readonly tasks: readonly TaskRef[];
  readonly onClose: () => void;
  readonly latestVersion?: boolean;
}) {
  const [options, setOptions] = useState<ClearOptions>({
    downstream: true,
    upstream: false,
    onlyFailed: false,
    latestVersion,
  });
  const set = (change: Partial<ClearOptions>) => setOptions({ ...options, ...change });
  return (
    <ActionDialog
      title={tasks.length === 1 ? `Clear ${tasks[0]!.taskId}` : `Clear ${tasksText(tasks.length)}`}
      explanation="Cleared tasks run again, in order. Their earlier tries and logs are kept."
      emptyText="No task would be cleared with these options."
      onClose={onClose}
      show={showInstances}
      plan={{
        preview: (signal) => previewOf(clearCalls(tasks, options, true), signal),
        previewKey: ["clear", tasks, options],
        calls: () => clearCalls(tasks, options, false),
        cli: () => clearTasksCommands(tasks, options),
        label: (instances) => `Clear ${tasksText(instances.length)}`,
        done: (instances) => `Cleared ${tasksText(instances.length)}`,
      }}
      options={
        <>
          <Option checked={options.downstream} onChange={(downstream) => set({ downstream })}>
            Downstream tasks
          </Option>
          <Option checked={options.upstream} onChange={(upstream) => set({ upstream })}>
            Upstream tasks
          </Option>
          <Option checked={options.onlyFailed} onChange={(onlyFailed) => set({ onlyFailed })}>
            Only failed
          </Option>
          <Option checked={options.latestVersion} onChange={(latest) => set({ latestVersion: latest })}>
            On the current version of the DAG
          </Option>
        </>
      }
    />
  );
}

type Marked = "success" | "failed" | "skipped";
const MARKS: readonly { readonly value: Marked; readonly label: string }[] = [
  { value: "success", label: "Success" },
  { value: "failed", label: "Failed" },
  { value: "skipped", label: "Skipped" },
];

function markCall(
  { dagId, mapIndex, runId, taskId }: TaskRef,
  body: unknown,
  suffix: "" | "/dry_run",
): Request {
  const base = apiPath`/dags/${dagId}/dagRuns/${runId}/taskInstances/${taskId}`;
  return { method: "PATCH", path: `${base}${mapIndex === null ? "" : `/${mapIndex}`}${suffix}`, body };
}

export function MarkTasks({
  tasks,
  state: first = "success",
  onClose,
}: {
  readonly tasks: readonly TaskRef[];
  readonly state?: Marked;
  readonly onClose: () => void;
}) {
  const [state, setState] = useState<Marked>(first);
  const [reach, setReach] = useState({ downstream: false, upstream: false });
  const body = {
    new_state: state,
    include_downstream: reach.downstream,
    include_upstream: reach.upstream,
  };
  return (
    <ActionDialog
      title={tasks.length === 1 ? `Mark ${tasks[0]!.taskId}` : `Mark ${tasksText(tasks.length)}`}
      explanation="Sets the state without running the task. A running try is stopped; tasks that wait for it go on by their rule."
      emptyText="No task would be changed with these options."
      onClose={onClose}
      show={showInstances}
      plan={{
        preview: async (signal) =>
          (
            await previewOf(
              tasks.map((task) => markCall(task, body, "/dry_run")),
              signal,
            )
          ).filter((each) => each.state !== state),
        previewKey: ["mark", tasks, body],
        calls: () => tasks.map((task) => markCall(task, body, "")),
        cli: () => markTasksCommands(tasks, state, reach),
        label: (instances) => `Mark ${tasksText(instances.length)} as ${state}`,
        done: (instances) => `Marked ${tasksText(instances.length)} as ${state}`,
        undo: (instances) => markBack(instances, state),
      }}
      options={
        <>
          <Segmented label="New state" options={MARKS} value={state} onChange={setState} />
          <Option checked={reach.downstream} onChange={(downstream) => setReach({ ...reach, downstream })}>
            Downstream tasks
          </Option>
          <Option checked={reach.upstream} onChange={(upstream) => setReach({ ...reach, upstream })}>
            Upstream tasks
          </Option>
        </>
      }
    />
  );
}

/** Most instances whose mark can be undone. */
const MOST_UNDONE = 100;

/** Possible if all of them had states that can be set, and only while none of them has run since. */
function markBack(before: readonly Instance[], marked: Marked): Undo | null {
  const isMark = (state: string | null) => MARKS.some(({ value }) => value === state);
  if (before.length === 0 || before.length > MOST_UNDONE || !before.every(({ state }) => isMark(state)))
    return null;
  const refs = before.map((each) => ({
    ...{ dagId: each.dag_id, runId: each.dag_run_id, taskId: each.task_id },
    mapIndex: each.map_index,
  }));
  const run = async () => {
    const now = await sendAll<Instance>(
      refs.map((ref) => ({ method: "GET", path: markCall(ref, undefined, "").path })),
    );
    const changed = now.filter(
      ({ state, try_number }, at) => state !== marked || try_number !== before[at]!.try_number,
    );
    if (changed.length > 0)
      throw new Error(`Not undone: ${changed.map(instanceLabel).slice(0, 5).join(", ")} has run since.`);
    await sendAll(refs.map((ref, at) => markCall(ref, { new_state: before[at]!.state }, "")));
  };
  const states = before.map(({ state }) => state ?? "");
  return { run, done: statesAgain(states, tasksText) };
}
