/** Events, outputs and configuration of a run. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { $api } from "../../api/client.ts";
import { StateBadge } from "../../state/glyph.tsx";
import { Ago, Elapsed, Exact } from "../../time/time.tsx";
import { JsonTree } from "../../ui/json-tree.tsx";
import { Facts } from "../../ui/page.tsx";
import { Empty, Loads } from "../../ui/panels.tsx";
import { Output } from "../task/outputs-tab.tsx";
import type { Run, RunAddress } from "./run-data.ts";

const LIMIT = 100;

export function RunEvents({ address }: { readonly address: RunAddress }) {
  const events = $api.useQuery("get", "/api/v2/eventLogs", {
    params: {
      query: { dag_id: address.dagId, run_id: address.runId, limit: LIMIT, order_by: "-when" },
    },
  });
  return (
    <Loads query={events}>
      {({ event_logs: found }) =>
        found.length === 0 ? (
          <Empty title="No event yet">
            What people do with this run and its tasks is listed here: who cleared, marked or cancelled what,
            and when.
          </Empty>
        ) : (
          <ol className="max-w-4xl px-4 py-2">
            {found.map((each) => (
              <li key={each.event_log_id} className="flex flex-wrap gap-x-3 border-b border-line py-1.5">
                <span className="w-24 shrink-0 text-muted">
                  <Ago at={each.when} />
                </span>
                <span className="font-medium">{each.owner ?? "unknown"}</span>
                <code>{each.event}</code>
                {each.task_id !== null && (
                  <Link
                    to="/dags/$dagId/runs/$runId/tasks/$taskId"
                    params={{ dagId: address.dagId, runId: address.runId, taskId: each.task_id }}
                    className="link"
                  >
                    {each.task_id}
                  </Link>
                )}
                {each.extra !== null && <span className="text-muted">{each.extra}</span>}
              </li>
            ))}
          </ol>
        )
      }
    </Loads>
  );
}

export function RunOutputs({ address }: { readonly address: RunAddress }) {
  const outputs = $api.useQuery(
    "get",
    "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/xcomEntries",
    {
      params: {
        path: { dag_id: address.dagId, dag_run_id: address.runId, task_id: "~" },
        query: { limit: LIMIT },
      },
    },
  );
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  return (
    <Loads query={outputs}>
      {({ total_entries: total, xcom_entries: found }) =>
        found.length === 0 ? (
          <Empty title="No output yet">What the tasks of this run return is listed here.</Empty>
        ) : (
          <ul className="max-w-4xl px-4 py-2">
            {found.map((each) => {
              const key = `${each.task_id} ${each.map_index}`;
              const isOpen = open.has(key);
              return (
                <li key={key} className="border-b border-line py-1.5">
                  <button
                    type="button"
                    aria-expanded={isOpen}
                    className="flex w-full items-center gap-3 text-left hover:text-accent"
                    onClick={() => {
                      const next = new Set(open);
                      if (!next.delete(key)) next.add(key);
                      setOpen(next);
                    }}
                  >
                    <span className="font-mono">
                      {each.task_id}
                      {each.map_index >= 0 && `[${each.map_index}]`}
                    </span>
                    <span className="ml-auto text-muted">
                      <Ago at={each.timestamp} />
                    </span>
                  </button>
                  {isOpen && (
                    <Output
                      address={{ ...address, taskId: each.task_id, mapIndex: each.map_index }}
                      absent="The output is empty."
                    />
                  )}
                </li>
              );
            })}
            {total > found.length && (
              <li className="py-2 text-muted">
                The first {found.length} of {total}: open a task to see its output.
              </li>
            )}
          </ul>
        )
      }
    </Loads>
  );
}

export function RunConf({ run }: { readonly run: Run }) {
  const hasConf = run.conf !== null && Object.keys(run.conf).length > 0;
  return (
    <div className="flex max-w-3xl flex-col gap-6 px-4 py-3">
      <section>
        <h2 className="mb-1.5">Configuration</h2>
        {hasConf ? (
          <JsonTree value={run.conf} name="conf" />
        ) : (
          <p className="text-muted">The run was started without values: its params have their defaults.</p>
        )}
      </section>
      <section>
        <h2 className="mb-1.5">Details</h2>
        <Facts
          rows={[
            ["Run", <code key="run">{run.dag_run_id}</code>],
            ["Logical date", <Exact key="logical" at={run.logical_date} />],
            ["Data interval from", <Exact key="from" at={run.data_interval_start} />],
            ["Data interval to", <Exact key="to" at={run.data_interval_end} />],
            ["Due", <Exact key="due" at={run.run_after} />],
            ["Queued", <Exact key="queued" at={run.queued_at} />],
            ["Started", <Exact key="started" at={run.start_date} />],
            ["Ended", <Exact key="ended" at={run.end_date} fallback="not yet" />],
            ["Try", run.max_tries === null ? run.try_number : `${run.try_number} of ${run.max_tries}`],
            run.end_reason === null ? null : ["Reason", run.end_reason],
            ["Triggered by", `${run.triggered_by ?? "–"} ${run.triggering_user_name ?? ""}`],
            run.partition_key === null ? null : ["Partition", run.partition_key],
            ["Note", run.note ?? "–"],
            run.lock
              ? [
                  "Driven by",
                  `${run.lock.kind} ${run.lock.job_id} on ${run.lock.hostname}, pid ${run.lock.pid}`,
                ]
              : null,
          ]}
        />
      </section>
      <Children address={{ dagId: run.dag_id, runId: run.dag_run_id }} />
    </div>
  );
}

/** Runs that tasks of this run have started. */
function Children({ address }: { readonly address: RunAddress }) {
  const children = $api.useQuery("get", "/api/v2/dags/{dag_id}/dagRuns", {
    params: {
      path: { dag_id: "~" },
      query: { parent_dag_id: address.dagId, parent_dag_run_id: address.runId, limit: LIMIT },
    },
  });
  const found = children.data?.dag_runs ?? [];
  if (found.length === 0) return null;
  return (
    <section>
      <h2 className="mb-1.5">Runs that it started</h2>
      <ul>
        {found.map((each) => (
          <li key={`${each.dag_id} ${each.dag_run_id}`} className="flex gap-4 border-b border-line py-1.5">
            <StateBadge state={each.state} />
            <Link
              to="/dags/$dagId/runs/$runId"
              params={{ dagId: each.dag_id, runId: each.dag_run_id }}
              className="link min-w-0 truncate"
            >
              {each.dag_id} {each.dag_run_id}
            </Link>
            <span className="ml-auto text-muted">
              <Elapsed from={each.start_date} to={each.end_date} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
