/** What waits, on what, since when, until when? */
import { keepPreviousData } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { SelectedTasks } from "../../actions/selected-tasks.tsx";
import { $api } from "../../api/client.ts";
import { runPath } from "../../app/paths.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { useReload } from "../../live/reload.ts";
import { count } from "../../time/format.ts";
import { Ago } from "../../time/time.tsx";
import { Button } from "../../ui/button.tsx";
import type { Column } from "../../ui/data-table.tsx";
import { Select } from "../../ui/field.tsx";
import { PageHeader } from "../../ui/page.tsx";
import { PagedTable } from "../../ui/paged-table.tsx";
import { Empty } from "../../ui/panels.tsx";
import { SortSelect } from "../../ui/sort-select.tsx";
import { Segmented } from "../../ui/tabs.tsx";
import { TaskLink } from "../../ui/task-link.tsx";
import { kindName, signalName, taskOf, type Wait, waitKey, waitText } from "./wait.ts";
import { WaitGroups } from "./wait-groups.tsx";
import { WaitPane } from "./wait-pane.tsx";

const PAGE = 100;
const VIEWS = [
  { value: "tasks", label: "Tasks" },
  { value: "groups", label: "Groups" },
] as const;
const ORDERS = {
  since: "Longest wait first",
  "-since": "Newest wait first",
} as const;

export default function WaitingPage() {
  const [search, setSearch] = useSearchState();
  const kind = textOf(search, "kind");
  const signal = textOf(search, "signal");
  const dag = textOf(search, "dag");
  const isGrouped = textOf(search, "view") === "groups";
  const open = textOf(search, "wait");
  const orderBy = textOf(search, "sort") ?? "since";
  const list = $api.useInfiniteQuery(
    "get",
    "/api/v2/waiting",
    {
      params: {
        query: {
          ...(kind && { kind }),
          ...(signal && { signal }),
          ...(dag && { dag_id: dag }),
          order_by: [orderBy],
          limit: PAGE,
        },
      },
    },
    {
      initialPageParam: "",
      getNextPageParam: (last) => last.next_cursor ?? undefined,
      placeholderData: keepPreviousData,
      enabled: !isGrouped,
    },
  );
  const rows = useMemo(() => (list.data?.pages ?? []).flatMap(({ waiting }) => waiting), [list.data]);
  const total = list.data?.pages[0]?.total_entries;
  useReload(isGrouped ? null : "waiting", ["/api/v2/waiting"]);
  const kinds = useMemo(
    () => [...new Set([...rows.map((row) => row.kind), ...(kind ? [kind] : [])])].sort(),
    [rows, kind],
  );
  const shown = isGrouped ? undefined : rows.find((row) => waitKey(row) === open);
  const empty = (
    <Empty
      title={kind || signal || dag ? "No task waits for this" : "No task is waiting"}
      command="tradewind waiting"
    >
      A task that waits for a moment, a file, a signal, another run or a person appears here, with the reason,
      since when, and until when. In a DAG: <code>await ctx.until("file", new FileTrigger(…))</code>
    </Empty>
  );
  return (
    <>
      <PageHeader
        title="Waiting"
        heading={
          total === null || total === undefined
            ? "Waiting"
            : `${count(total)} waiting ${total === 1 ? "task" : "tasks"}`
        }
        facts="Open a task to see why it waits, to send its signal, or to mark it."
        actions={
          <>
            {dag && <Button onClick={() => setSearch({ dag: undefined })}>DAG {dag} ✕</Button>}
            {signal && (
              <Button onClick={() => setSearch({ signal: undefined })}>Signal {signalName(signal)} ✕</Button>
            )}
            {!isGrouped && (
              <>
                <Select
                  aria-label="Kind of wait"
                  value={kind ?? ""}
                  onChange={(event) => setSearch({ kind: event.target.value })}
                >
                  <option value="">Any kind</option>
                  {kinds.map((each) => (
                    <option key={each} value={each}>
                      {kindName(each)}
                    </option>
                  ))}
                </Select>
                <SortSelect orders={ORDERS} value={orderBy} onChange={(sort) => setSearch({ sort })} />
              </>
            )}
            <Segmented
              label="View"
              options={VIEWS}
              value={isGrouped ? "groups" : "tasks"}
              onChange={(view) =>
                setSearch(
                  view === "groups"
                    ? { view, kind: undefined, signal: undefined, wait: undefined }
                    : { view: undefined },
                )
              }
            />
          </>
        }
      />
      <div className="relative flex min-h-0 flex-1 border-t border-line">
        <div className="min-w-0 flex-1">
          {isGrouped ? (
            <WaitGroups dag={dag} empty={empty} />
          ) : (
            <PagedTable
              query={list}
              empty={empty}
              label="Waiting tasks"
              columns={COLUMNS}
              rows={rows}
              rowKey={waitKey}
              onOpen={(row) => setSearch({ wait: waitKey(row) })}
              isOpen={(row) => waitKey(row) === open}
              bulk={(chosen) => <SelectedTasks tasks={chosen.map(taskOf)} />}
            />
          )}
        </div>
        {shown && <WaitPane wait={shown} onClose={() => setSearch({ wait: undefined })} />}
      </div>
    </>
  );
}

const COLUMNS: readonly Column<Wait>[] = [
  {
    id: "task",
    header: "Task",
    cell: (row) => <TaskLink row={row} />,
  },
  {
    id: "for",
    header: "Waits for",
    cell: (row) => (
      <span
        className="flex min-w-0 max-w-[16ch] items-baseline gap-x-2 max-sm:flex-wrap sm:max-w-[44ch]"
        title={row.args_text}
      >
        <span className="whitespace-nowrap">{kindName(row.kind)}</span>
        <code className="truncate text-muted">{waitText(row)}</code>
      </span>
    ),
  },
  {
    id: "run",
    header: "Run",
    from: "xl",
    cell: (row) => (
      <Link
        to={runPath(row.dag_id, row.dag_run_id)}
        className="block max-w-[30ch] truncate font-mono text-muted hover:underline"
      >
        {row.dag_run_id}
      </Link>
    ),
  },
  { id: "since", header: "Since", width: "110px", sort: "since", cell: (row) => <Ago at={row.since} /> },
  {
    id: "polled",
    header: "Last poll",
    width: "100px",
    from: "lg",
    cell: (row) => <Ago at={row.last_polled_at} />,
  },
  {
    id: "until",
    header: "Until",
    width: "120px",
    from: "sm",
    cell: (row) => <Ago at={row.until ?? row.timeout_at ?? row.task_timeout_at} fallback="no timeout" />,
  },
];
