/** The graph of a DAG in the states of the selected run, or else of the latest one. */

import { useCallback, useMemo } from "react";
import { usePreferences } from "../../app/preferences.ts";
import { LazyGraph } from "../../graph/lazy-graph.tsx";
import { dateOf } from "../../grid/grid-axis.ts";
import { type GridModel, worstOf } from "../../grid/grid-model.ts";
import type { GridSelection } from "../../grid/grid-view.tsx";
import { shortDate } from "../../time/format.ts";

export function DagGraph({
  model,
  selection,
  collapsed,
  text,
  onSelect,
  onToggle,
}: {
  readonly model: GridModel;
  readonly selection: GridSelection;
  readonly collapsed: ReadonlySet<string>;
  readonly text: string;
  readonly onSelect: (selection: GridSelection) => void;
  readonly onToggle: (group: string) => void;
}) {
  const { zone } = usePreferences();
  const column = model.columns.find(({ runId }) => runId === selection.runId) ?? model.columns.at(-1);
  const { tasks, groups, edges } = model;
  // Another run has the same structure: the graph keeps its layout.
  const structure = useMemo(() => ({ tasks, groups, edges }), [tasks, groups, edges]);
  const stateOf = useMemo(
    () =>
      column &&
      ((place: number) => {
        const byte = column.states[place] ?? 0;
        const counts = column.mapped.get(place);
        return {
          state: byte === 0 ? null : model.legend[byte]!,
          instances: counts?.reduce((sum, [, instances]) => sum + instances, 0),
          isRetried: (column.tries?.[place] ?? 0) > 1,
        };
      }),
    [column, model.legend],
  );
  const worst = useMemo(
    () =>
      column &&
      ((places: readonly number[]) => {
        const byte = worstOf(model, column, places);
        return byte === 0 ? null : model.legend[byte]!;
      }),
    [column, model],
  );
  const runId = selection.runId ?? column?.runId;
  const open = useCallback((taskId: string) => onSelect({ runId, taskId }), [onSelect, runId]);
  return (
    <div className="flex size-full flex-col">
      {column && (
        <p className="px-4 py-1 text-right text-sm text-muted">
          States of the run of {shortDate(dateOf(column), zone)}
        </p>
      )}
      <div className="min-h-0 flex-1">
        <LazyGraph
          structure={structure}
          stateOf={stateOf}
          worstOf={worst}
          collapsed={collapsed}
          onToggle={onToggle}
          selected={selection.taskId}
          onSelect={open}
          text={text}
        />
      </div>
    </div>
  );
}
