/** What can be done with the run or task of the pane. Each opens a dialog that shows what would change. */
import { useState } from "react";
import { type RunAction, RunActionDialog } from "../../actions/run-actions.tsx";
import { ClearTasks, MarkTasks } from "../../actions/task-actions.tsx";
import { Button } from "../../ui/button.tsx";

export function RunActions({
  dagId,
  runId,
  state,
}: {
  readonly dagId: string;
  readonly runId: string;
  readonly state: string;
}) {
  const [action, setAction] = useState<RunAction>();
  const isOpen = state === "running" || state === "queued";
  const actions: readonly (readonly [RunAction, string])[] = [
    ...(state === "failed" ? ([["retry", "Clear failed tasks…"]] as const) : []),
    ["clear", "Clear…"],
    ["mark", "Mark as…"],
    ...(isOpen ? ([["cancel", "Cancel…"]] as const) : []),
  ];
  return (
    <p className="flex flex-wrap gap-2 px-4">
      {actions.map(([each, label]) => (
        <Button key={each} onClick={() => setAction(each)}>
          {label}
        </Button>
      ))}
      {action !== undefined && (
        <RunActionDialog
          action={action}
          runs={[{ dagId, runId, state }]}
          onClose={() => setAction(undefined)}
        />
      )}
    </p>
  );
}

export function TaskActions({
  dagId,
  runId,
  taskId,
}: {
  readonly dagId: string;
  readonly runId: string;
  readonly taskId: string;
}) {
  const [action, setAction] = useState<"clear" | "mark">();
  const tasks = [{ dagId, runId, taskId, mapIndex: null }];
  return (
    <>
      <Button onClick={() => setAction("clear")}>Clear…</Button>
      <Button onClick={() => setAction("mark")}>Mark as…</Button>
      {action === "clear" && <ClearTasks tasks={tasks} onClose={() => setAction(undefined)} />}
      {action === "mark" && <MarkTasks tasks={tasks} onClose={() => setAction(undefined)} />}
    </>
  );
}
