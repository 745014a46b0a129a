/** Schedules on several signals, and the rules of signal-driven runs: which parts of each condition are met, what is missing, and how often it has fired. */
import { keepPreviousData } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { $api } from "../../api/client.ts";
import type { components } from "../../api/schema.gen.ts";
import { runPath, taskPath } from "../../app/paths.ts";
import { useReload } from "../../live/reload.ts";
import { count } from "../../time/format.ts";
import type { Column } from "../../ui/data-table.tsx";
import { PagedTable } from "../../ui/paged-table.tsx";
import { Empty } from "../../ui/panels.tsx";
import { ConditionParts } from "./condition-parts.tsx";
import { SignalSchedules } from "./signal-schedules.tsx";

type Run = components["schemas"]["RunConditions"];
type Rule = components["schemas"]["SignalRule"];

interface Row extends Rule {
  readonly run: Run;
  /** Requested starts of its task that are pending. */
  readonly pending: number;
}

const PAGE = 50;

export function Conditions() {
  const list = $api.useInfiniteQuery(
    "get",
    "/api/v2/signals/conditions",
    { params: { query: { limit: PAGE } } },
    {
      initialPageParam: "",
      getNextPageParam: (last) => last.next_cursor ?? undefined,
      placeholderData: keepPreviousData,
    },
  );
  useReload("signals", ["/api/v2/signals/conditions"]);
  const rows = useMemo(
    () => (list.data?.pages ?? []).flatMap(({ runs }) => runs).flatMap(rowsOf),
    [list.data],
  );
  const held = list.data?.pages[0]?.runs.flatMap(({ held_by }) => held_by).slice(0, 1) ?? [];
  return (
    <div className="flex min-w-0 flex-1 flex-col">
      {held.map(({ message }) => (
        <p key={message} role="alert" className="border-b border-line bg-warn-soft px-4 py-2">
          {message}
        </p>
      ))}
      <SignalSchedules />
      <div className="min-h-0 flex-1">
        <PagedTable
          // The server counts runs, the table shows rules.
          query={{ ...list, data: list.data && { pages: list.data.pages.map(({ runs }) => ({ runs })) } }}
          empty={
            <Empty title="No running run has rules on signals" command="tradewind signals conditions">
              Tasks with rules start, restart or stop by signals while their run is open. In a DAG:{" "}
              <code>on: [restart(model.trained)]</code>
            </Empty>
          }
          label="Rules of running runs"
          columns={COLUMNS}
          rows={rows}
          rowKey={({ rule_index, run, task_id }) =>
            JSON.stringify([run.dag_id, run.dag_run_id, task_id, rule_index])
          }
        />
      </div>
    </div>
  );
}

function rowsOf(run: Run): Row[] {
  const pending = new Map(run.tasks.map(({ pending_starts, task_id }) => [task_id, pending_starts]));
  return run.rules.map((rule) => ({ ...rule, run, pending: pending.get(rule.task_id ?? "") ?? 0 }));
}

const COLUMNS: readonly Column<Row>[] = [
  {
    id: "rule",
    header: "Rule",
    width: "26%",
    cell: ({ action, run, task_id: task }) => (
      <span className="block max-w-[48ch] truncate">
        {task === null ? "close" : action}{" "}
        <Link
          to={
            task === null ? runPath(run.dag_id, run.dag_run_id) : taskPath(run.dag_id, run.dag_run_id, task)
          }
          className="font-medium hover:underline"
        >
          {run.dag_id} › {task ?? "the run"}
        </Link>
      </span>
    ),
  },
  {
    id: "condition",
    header: "Condition",
    cell: ({ condition, parts }) =>
      parts.length > 1 ? (
        <ConditionParts condition={condition} parts={parts} />
      ) : (
        <code className="block max-w-[60ch] truncate" title={condition}>
          {condition}
        </code>
      ),
  },
  {
    id: "state",
    header: "State",
    width: "160px",
    from: "md",
    cell: ({ is_armed: isArmed, missing, once, run }) =>
      run.closed !== null ? (
        <span className="text-muted">run is closing</span>
      ) : isArmed ? (
        <span className="block max-w-[24ch] truncate text-muted" title={`Waits for ${missing}`}>
          waits
        </span>
      ) : (
        <span className="text-muted">{once ? "has fired once" : "not armed"}</span>
      ),
  },
  {
    id: "fired",
    header: "Fired",
    numeric: true,
    width: "80px",
    cell: ({ fired }) => (fired === null ? "–" : count(fired)),
  },
  {
    id: "pending",
    header: "Pending starts",
    numeric: true,
    width: "120px",
    from: "md",
    cell: ({ pending }) => (pending === 0 ? <span className="text-faint">0</span> : <b>{count(pending)}</b>),
  },
  {
    id: "run",
    header: "Run",
    from: "xl",
    cell: ({ run }) => (
      <Link
        to={runPath(run.dag_id, run.dag_run_id)}
        className="block max-w-[30ch] truncate font-mono text-muted hover:underline"
      >
        {run.dag_run_id}
      </Link>
    ),
  },
];
