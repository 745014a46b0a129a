/** A run in the pane: what failed, how long it took compared with others, and its tasks. */
import { Link } from "@tanstack/react-router";
import { Note } from "../../actions/note.tsx";
import { $api } from "../../api/client.ts";
import { type GridColumn, type GridModel, tookOf, usualOf } from "../../grid/grid-model.ts";
import type { GridSelection } from "../../grid/grid-view.tsx";
import { useReload } from "../../live/reload.ts";
import { StateBadge, StateGlyph } from "../../state/glyph.tsx";
import { lookOf } from "../../state/states.ts";
import { useNow } from "../../time/clock.ts";
import { duration } from "../../time/format.ts";
import { Ago, Elapsed, Exact } from "../../time/time.tsx";
import { cx } from "../../ui/class-names.ts";
import { Facts } from "../../ui/page.tsx";
import { Loads } from "../../ui/panels.tsx";
import { RunActions } from "./pane-actions.tsx";
import { type RunTask, runTasks } from "./run-tasks.ts";

export function RunDetails({
  dagId,
  runId,
  column,
  model,
  onSelect,
}: {
  readonly dagId: string;
  readonly runId: string;
  readonly column: GridColumn | undefined;
  readonly model: GridModel;
  readonly onSelect: (selection: GridSelection) => void;
}) {
  const path = { dag_id: dagId, dag_run_id: runId };
  const run = $api.useQuery("get", "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}", { params: { path } });
  const timeline = $api.useQuery("get", "/ui/dags/{dag_id}/runs/{dag_run_id}/timeline", {
    params: { path, query: { limit: 1 } },
  });
  useReload(run.data?.end_date === null ? `run:${dagId}/${runId}` : null, RELOADED);
  return (
    <Loads query={run}>
      {(data) => (
        <div className="flex flex-col gap-4 py-3">
          <div className="flex items-baseline gap-2 px-4">
            <StateBadge state={data.state} />
            <span className="text-muted">
              <Ago at={data.end_date ?? data.start_date ?? data.queued_at} />
            </span>
            <span className="ml-auto font-medium">
              <Elapsed from={data.start_date} to={data.end_date} />
            </span>
          </div>
          {data.state === "failed" && <FailedTasks dagId={dagId} runId={runId} onSelect={onSelect} />}
          {data.held_by !== undefined && data.held_by.length > 0 && (
            <ul className="mx-4 rounded-md bg-warn-soft px-3 py-2">
              {data.held_by.map(({ code, message }) => (
                <li key={code}>{message}</li>
              ))}
            </ul>
          )}
          <RunActions dagId={dagId} runId={runId} state={data.state} />
          <div className="px-4">
            <Facts
              rows={[
                column ? ["Usual time", <Usual key="usual" column={column} model={model} />] : null,
                ["Triggered by", causeOf(data)],
                [
                  "Started",
                  <span key="started">
                    <Exact at={data.start_date} fallback="not yet" />
                  </span>,
                ],
                data.data_interval_start !== data.data_interval_end && data.data_interval_start !== null
                  ? [
                      "Data interval",
                      <span key="interval">
                        <Exact at={data.data_interval_start} /> → <Exact at={data.data_interval_end} />
                      </span>,
                    ]
                  : null,
                [
                  "Version",
                  data.dag_versions.map(({ version_number }) => `v${version_number}`).join(", ") || "–",
                ],
                // Failed tasks are listed above.
                data.end_reason === null || data.end_reason === "task_failure"
                  ? null
                  : ["Ended because", data.end_reason],
                ["Note", <Note key="note" of={{ dagId, runId }} note={data.note} />],
                data.conf && Object.keys(data.conf).length > 0
                  ? [
                      "Conf",
                      <code key="conf" className="break-all whitespace-pre-wrap">
                        {JSON.stringify(data.conf)}
                      </code>,
                    ]
                  : null,
                [
                  "Run id",
                  <code key="id" className="break-all">
                    {runId}
                  </code>,
                ],
              ]}
            />
          </div>
          <Loads query={timeline}>
            {(shown) => (
              <TaskList
                tasks={runTasks(shown as unknown as Parameters<typeof runTasks>[0])}
                length={(shown.run.ended ?? shown.now) - shown.origin}
                isOpen={shown.run.ended === null}
                onTask={(taskId) => onSelect({ runId, taskId })}
              />
            )}
          </Loads>
        </div>
      )}
    </Loads>
  );
}

const RELOADED = [
  "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}",
  "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances",
  "/ui/dags/{dag_id}/runs/{dag_run_id}/timeline",
];

function causeOf({
  parent,
  run_kind: kind,
  triggered_by: by,
  triggering_user_name: user,
}: {
  readonly run_kind: string;
  readonly triggered_by: string | null;
  readonly triggering_user_name: string | null;
  readonly parent: { readonly dag_id: string; readonly task_id: string } | null;
}): string {
  if (parent !== null) return `${parent.task_id} of ${parent.dag_id}`;
  const how =
    by === null
      ? kind.replaceAll("_", " ")
      : { cli: "CLI", rest_api: "REST API", ui: "web UI" }[by as string];
  return [how ?? kind.replaceAll("_", " "), user === null ? null : `by ${user}`].filter(Boolean).join(", ");
}

/** Where this run lies between the fastest and the slowest of the loaded ones. */
function Usual({ column, model }: { readonly column: GridColumn; readonly model: GridModel }) {
  const now = useNow();
  const usual = usualOf(model.columns);
  const took = tookOf(column, now);
  if (usual === null) return <span className="text-muted">no successful run to compare with</span>;
  const difference = took === null ? 0 : took - usual;
  return (
    <>
      {duration(usual)}
      {took !== null && Math.abs(difference) >= 1_000 && (
        <span className={cx(difference > usual / 2 ? "font-medium text-warn" : "text-muted")}>
          {" "}
          · {difference > 0 ? "+" : "−"}
          {duration(Math.abs(difference))}
        </span>
      )}
    </>
  );
}

const MOST_FAILED = 3;

function FailedTasks({
  dagId,
  runId,
  onSelect,
}: {
  readonly dagId: string;
  readonly runId: string;
  readonly onSelect: (selection: GridSelection) => void;
}) {
  const failed = $api.useQuery("get", "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances", {
    params: {
      path: { dag_id: dagId, dag_run_id: runId },
      query: { state: ["failed"], limit: MOST_FAILED, order_by: "end_date" },
    },
  });
  const { task_instances: instances = [], total_entries: total = 0 } = failed.data ?? {};
  return (
    <ul className="flex flex-col gap-2 bg-danger-soft px-4 py-2.5 empty:hidden">
      {instances.map((instance) => (
        <li key={instance.id}>
          <p className="flex items-center gap-1.5">
            <StateGlyph state="failed" />
            <button
              type="button"
              className="truncate font-medium hover:underline"
              onClick={() => onSelect({ runId, taskId: instance.task_id })}
            >
              {instance.task_id}
              {instance.map_index >= 0 && ` [${instance.rendered_map_index ?? instance.map_index}]`}
            </button>
            <span className="ml-auto shrink-0 text-muted">
              try {instance.try_number} of {instance.max_tries + 1}
            </span>
          </p>
          {instance.reason !== null && (
            <p className="mt-0.5 line-clamp-4 font-mono break-words text-text">{instance.reason}</p>
          )}
          <p className="mt-0.5 flex gap-3">
            {(["log", "why"] as const).map((tab) => (
              <Link
                key={tab}
                className="link"
                to={
                  `/dags/${encodeURIComponent(dagId)}/runs/${encodeURIComponent(runId)}/tasks/${encodeURIComponent(instance.task_id)}` as "/"
                }
                search={{ tab, ...(instance.map_index >= 0 && { map: instance.map_index }) } as never}
              >
                {tab === "log" ? "Log" : "Why"}
              </Link>
            ))}
          </p>
        </li>
      ))}
      {(total ?? 0) > MOST_FAILED && (
        <li className="text-muted">and {(total ?? 0) - MOST_FAILED} other failed task instances</li>
      )}
    </ul>
  );
}

const MOST_TASKS = 200;

function TaskList({
  tasks,
  length,
  isOpen,
  onTask,
}: {
  readonly tasks: readonly RunTask[];
  readonly length: number;
  readonly isOpen: boolean;
  readonly onTask: (taskId: string) => void;
}) {
  return (
    <div>
      <p className="flex items-baseline justify-between border-t border-line px-4 pt-3 pb-1">
        <span className="font-medium">
          {tasks.length} {tasks.length === 1 ? "task" : "tasks"}
        </span>
        <span className="text-sm text-muted">
          {isOpen ? `until now: ${duration(length)}` : `0 – ${duration(length)}`}
        </span>
      </p>
      {tasks.slice(0, MOST_TASKS).map((task) => (
        <button
          key={task.taskId}
          type="button"
          onClick={() => onTask(task.taskId)}
          title={`${task.taskId}, ${lookOf(task.state).label}`}
          className="grid h-7 w-full grid-cols-[16px_minmax(0,1fr)_96px_64px] items-center gap-2 px-4 text-left hover:bg-hover"
        >
          <StateGlyph state={task.state} title={lookOf(task.state).label} />
          <span className="truncate">
            {task.taskId}
            {task.instances !== null && <span className="text-faint"> ×{task.instances}</span>}
          </span>
          <Spans task={task} length={length} />
          <span className="text-right text-muted tabular-nums">
            {task.from === null ? "–" : duration((task.to ?? length) - task.from)}
          </span>
        </button>
      ))}
      {tasks.length > MOST_TASKS && (
        <p className="px-4 py-1 text-muted">
          The page of the run shows the other {tasks.length - MOST_TASKS}.
        </p>
      )}
    </div>
  );
}

function Spans({ task, length }: { readonly task: RunTask; readonly length: number }) {
  return (
    <svg aria-hidden width={96} height={10} viewBox="0 0 96 10">
      <path d="M0 5H96" stroke="var(--line)" />
      {task.spans.map((span) => {
        const x = (span.from / Math.max(1, length)) * 96;
        const width = Math.max(1.5, (((span.to ?? length) - span.from) / Math.max(1, length)) * 96);
        return (
          <rect
            key={`${span.from} ${span.state}`}
            x={Math.min(x, 94)}
            y={1}
            width={width}
            height={8}
            rx={1}
            fill={`var(${lookOf(span.state).color})`}
          />
        );
      })}
    </svg>
  );
}
