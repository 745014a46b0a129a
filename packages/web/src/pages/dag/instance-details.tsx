/** A task of a run in the pane: its state, why it failed or does not run, and where to read on. */
import { Link } from "@tanstack/react-router";
import { Note } from "../../actions/note.tsx";
import { $api } from "../../api/client.ts";
import { useReload } from "../../live/reload.ts";
import { StateBadge } from "../../state/glyph.tsx";
import { lookOf } from "../../state/states.ts";
import { count } from "../../time/format.ts";
import { Ago, Elapsed, Exact } from "../../time/time.tsx";
import { buttonClass } from "../../ui/button.tsx";
import { Facts } from "../../ui/page.tsx";
import { Loads } from "../../ui/panels.tsx";
import { TaskActions } from "./pane-actions.tsx";

interface Instance {
  readonly dagId: string;
  readonly runId: string;
  readonly taskId: string;
}

export function InstanceDetails({ isMapped, ...of }: Instance & { readonly isMapped: boolean }) {
  useReload(`run:${of.dagId}/${of.runId}`, RELOADED);
  return isMapped ? <Mapped {...of} /> : <Single {...of} />;
}

const RELOADED = [
  "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}",
  "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/listMapped",
];

function pageOf({ dagId, runId, taskId }: Instance): string {
  return `/dags/${encodeURIComponent(dagId)}/runs/${encodeURIComponent(runId)}/tasks/${encodeURIComponent(taskId)}`;
}

function Pages({
  of,
  tabs,
}: {
  readonly of: Instance;
  readonly tabs: readonly (readonly [string, string])[];
}) {
  return (
    <p className="flex flex-wrap gap-2 px-4">
      {tabs.map(([tab, label]) => (
        <Link key={tab} to={pageOf(of) as "/"} search={{ tab } as never} className={buttonClass("plain")}>
          {label}
        </Link>
      ))}
      <TaskActions {...of} />
    </p>
  );
}

function Single(of: Instance) {
  const path = { dag_id: of.dagId, dag_run_id: of.runId, task_id: of.taskId };
  const instance = $api.useQuery(
    "get",
    "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}",
    { params: { path } },
  );
  return (
    <Loads query={instance}>
      {(data) => (
        <div className="flex flex-col gap-3 py-3">
          <div className="flex items-baseline gap-2 px-4">
            <StateBadge state={data.state} />
            <span className="text-muted">
              <Ago at={data.end_date ?? data.start_date ?? data.scheduled_when} fallback="" />
            </span>
            <span className="ml-auto font-medium">
              <Elapsed from={data.start_date} to={data.end_date} />
            </span>
          </div>
          {data.reason !== null && (
            <p className="bg-danger-soft px-4 py-2 font-mono break-words whitespace-pre-wrap">
              {data.reason}
            </p>
          )}
          {data.failed_upstream !== null && (
            <p className="px-4">
              Failed upstream: <code>{data.failed_upstream.task_id}</code>
            </p>
          )}
          <Pages
            of={of}
            tabs={
              data.start_date === null
                ? [["why", "Why it does not run"]]
                : [
                    ["log", "Log"],
                    ["why", "Why"],
                    ["attempts", "Attempts"],
                  ]
            }
          />
          <div className="px-4">
            <Facts
              rows={[
                ["Try", `${data.try_number} of ${data.max_tries + 1}`],
                ["Started", <Exact key="started" at={data.start_date} fallback="not yet" />],
                data.retry_at === null ? null : ["Next try", <Ago key="retry" at={data.retry_at} />],
                ["Operator", data.operator_name ?? data.operator ?? "–"],
                ["Pool", data.pool_slots === 1 ? data.pool : `${data.pool}, ${data.pool_slots} slots`],
                ["Note", <Note key="note" of={of} note={data.note} />],
              ]}
            />
          </div>
        </div>
      )}
    </Loads>
  );
}

const SHOWN = 50;

/** The instances to look at first. */
function Mapped(of: Instance) {
  const path = { dag_id: of.dagId, dag_run_id: of.runId, task_id: of.taskId };
  const list = $api.useQuery(
    "get",
    "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/listMapped",
    { params: { path, query: { limit: SHOWN, order_by: "map_index" } } },
  );
  const failed = $api.useQuery(
    "get",
    "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/listMapped",
    { params: { path, query: { limit: SHOWN, state: ["failed"], order_by: "map_index" } } },
  );
  return (
    <Loads query={list}>
      {({ task_instances: instances, total_entries: total }) => {
        const first = failed.data?.task_instances ?? [];
        const ids = new Set(first.map(({ id }) => id));
        const shown = [...first, ...instances.filter(({ id }) => !ids.has(id))].slice(0, SHOWN);
        return (
          <div className="flex flex-col gap-2 py-3">
            <Pages of={of} tabs={[]} />
            <p className="px-4 font-medium">
              {count(total ?? instances.length)} instances
              {first.length > 0 && (
                <span className="text-danger">, {count(failed.data?.total_entries ?? 0)} failed</span>
              )}
            </p>
            <ul className="max-h-80 overflow-auto">
              {shown.map((each) => (
                <li key={each.id}>
                  <Link
                    to={pageOf(of) as "/"}
                    search={{ map: each.map_index } as never}
                    className="flex h-7 items-center gap-2 px-4 hover:bg-hover"
                    title={each.reason ?? lookOf(each.state).label}
                  >
                    <StateBadge
                      state={each.state}
                      label={each.rendered_map_index ?? String(each.map_index)}
                    />
                    <span className="ml-auto text-muted">
                      <Elapsed from={each.start_date} to={each.end_date} />
                    </span>
                  </Link>
                </li>
              ))}
            </ul>
            {(total ?? 0) > SHOWN && <p className="px-4 pt-1 text-muted">The page of the task shows all.</p>}
          </div>
        );
      }}
    </Loads>
  );
}
