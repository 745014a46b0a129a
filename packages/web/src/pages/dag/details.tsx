/** The pane of what is selected: a run, a task of a run, or a task over all runs. */
import type { GridModel } from "../../grid/grid-model.ts";
import type { GridSelection } from "../../grid/grid-view.tsx";
import { Pane } from "../../ui/pane.tsx";
import { InstanceDetails } from "./instance-details.tsx";
import { RunDetails } from "./run-details.tsx";
import { RunTitle } from "./run-title.tsx";
import { TaskHistory } from "./task-history.tsx";

export function Details({
  dagId,
  model,
  selection: { runId, taskId },
  onSelect,
}: {
  readonly dagId: string;
  readonly model: GridModel;
  readonly selection: GridSelection;
  readonly onSelect: (selection: GridSelection) => void;
}) {
  const onClose = () => onSelect({});
  const column = model.columns.find((each) => each.runId === runId);
  const task = model.tasks.find((each) => each.task_id === taskId);
  return (
    <Pane
      onClose={onClose}
      title={
        runId === undefined ? (
          taskId
        ) : (
          <RunTitle dagId={dagId} model={model} runId={runId} taskId={taskId} onSelect={onSelect} />
        )
      }
    >
      {runId === undefined ? (
        <TaskHistory dagId={dagId} model={model} taskId={taskId!} onSelect={onSelect} />
      ) : taskId === undefined ? (
        <RunDetails dagId={dagId} runId={runId} column={column} model={model} onSelect={onSelect} />
      ) : (
        <>
          <InstanceDetails dagId={dagId} runId={runId} taskId={taskId} isMapped={task?.is_mapped ?? false} />
          <TaskHistory dagId={dagId} model={model} taskId={taskId} runId={runId} onSelect={onSelect} />
        </>
      )}
    </Pane>
  );
}
