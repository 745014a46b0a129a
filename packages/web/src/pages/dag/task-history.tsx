/** A task over the loaded runs: how often it failed, and each of its states. */
import { usePreferences } from "../../app/preferences.ts";
import { dateOf } from "../../grid/grid-axis.ts";
import type { GridModel } from "../../grid/grid-model.ts";
import type { GridSelection } from "../../grid/grid-view.tsx";
import { StateGlyph } from "../../state/glyph.tsx";
import { lookOf } from "../../state/states.ts";
import { shortDate } from "../../time/format.ts";
import { cx } from "../../ui/class-names.ts";
import { Facts } from "../../ui/page.tsx";

const SHOWN = 60;

export function TaskHistory({
  model,
  taskId,
  runId,
  onSelect,
}: {
  readonly dagId: string;
  readonly model: GridModel;
  readonly taskId: string;
  readonly runId?: string;
  readonly onSelect: (selection: GridSelection) => void;
}) {
  const { zone } = usePreferences();
  const place = placeOf(model, taskId);
  if (place < 0) return <p className="p-4 text-muted">The current version of the DAG has no such task.</p>;
  const task = model.tasks[place];
  const known = model.columns
    .map((column) => ({ column, state: model.legend[column.states[place] ?? 0]! }))
    .filter(({ state }) => state !== "none");
  const failed = known.filter(({ state }) => state === "failed").length;
  const ended = known.filter(({ state }) => state === "failed" || state === "success").length;
  const retried = model.columns.filter(({ tries }) => (tries?.[place] ?? 0) > 1).length;
  const neighbours = (from: readonly number[], to: readonly number[]) =>
    from.flatMap((each, index) => (each === place ? [model.tasks[to[index]!]!.task_id] : []));
  const { edges } = model;
  return (
    <div className="flex flex-col gap-3 border-t border-line py-3 first:border-t-0">
      {task !== undefined && (
        <div className="px-4">
          <Facts
            rows={[
              runId === undefined ? ["Operator", task.operator] : null,
              task.role === "work" ? null : ["Role", task.role],
              [
                "Upstream",
                <Names key="up" ids={neighbours(edges.to, edges.from)} {...{ runId, onSelect }} />,
              ],
              [
                "Downstream",
                <Names key="down" ids={neighbours(edges.from, edges.to)} {...{ runId, onSelect }} />,
              ],
            ]}
          />
        </div>
      )}
      <p className="px-4">
        <span className={cx(failed > 0 && "font-medium text-danger")}>
          {failed === 0
            ? "No failure"
            : `${failed} failed (${Math.round((failed / Math.max(1, ended)) * 100)} %)`}
        </span>
        <span className="text-muted">
          {" "}
          in {known.length} {known.length === 1 ? "run" : "runs"}
          {retried > 0 && `, ${retried} retried`}
        </span>
      </p>
      <div className="flex flex-wrap gap-0.5 px-4">
        {known.slice(-SHOWN).map(({ column, state }) => (
          <button
            key={column.runId}
            type="button"
            aria-current={column.runId === runId ? "true" : undefined}
            aria-label={`${lookOf(state).label}, ${shortDate(dateOf(column), zone)}`}
            title={`${lookOf(state).label}, ${shortDate(dateOf(column), zone)}`}
            onClick={() => onSelect({ runId: column.runId, taskId })}
            className={cx("rounded-sm p-1", column.runId === runId ? "bg-accent-soft" : "hover:bg-hover")}
          >
            <StateGlyph state={state} />
          </button>
        ))}
      </div>
    </div>
  );
}

function placeOf({ removed, tasks }: GridModel, taskId: string): number {
  const place = tasks.findIndex((task) => task.task_id === taskId);
  if (place >= 0) return place;
  const index = removed.indexOf(taskId);
  return index < 0 ? -1 : tasks.length + index;
}

const MOST = 8;

function Names({
  ids,
  runId,
  onSelect,
}: {
  readonly ids: readonly string[];
  readonly runId: string | undefined;
  readonly onSelect: (selection: GridSelection) => void;
}) {
  if (ids.length === 0) return <span className="text-faint">none</span>;
  return (
    <>
      {ids.slice(0, MOST).map((taskId, index) => (
        <span key={taskId}>
          {index > 0 && ", "}
          <button
            type="button"
            className="link inline-block py-0.5 leading-5"
            onClick={() => onSelect({ runId, taskId })}
          >
            {taskId}
          </button>
        </span>
      ))}
      {ids.length > MOST && ` and ${ids.length - MOST} others`}
    </>
  );
}
