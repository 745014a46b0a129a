/** What needs a person, and who answered what? */

import { keepPreviousData } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { $api } from "../../api/client.ts";
import { runPath } from "../../app/paths.ts";
import { usePreferences } from "../../app/preferences.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { useSession } from "../../app/session.tsx";
import { shortDate } from "../../time/format.ts";
import { timeOfId } from "../../time/run-time.ts";
import { Ago } from "../../time/time.tsx";
import { Button } from "../../ui/button.tsx";
import { type Column, DataTable } from "../../ui/data-table.tsx";
import { ListFooter } from "../../ui/list-footer.tsx";
import { PageHeader } from "../../ui/page.tsx";
import { Empty, Loads } from "../../ui/panels.tsx";
import { TabLinks } from "../../ui/tabs.tsx";
import { TaskLink } from "../../ui/task-link.tsx";
import { APPROVALS, type Approval, stateText, whoText } from "./approval.ts";
import { ApprovalPane } from "./approval-pane.tsx";

const PAGE = 100;
const CLOSED = ["answered", "timed_out", "cancelled"] as const;

export default function ApprovalsPage() {
  const [search, setSearch] = useSearchState();
  const { user } = useSession();
  const tab = textOf(search, "tab") === "closed" ? "closed" : "open";
  const dag = textOf(search, "dag");
  const assignee = textOf(search, "assignee");
  const opened = textOf(search, "approval");
  const list = $api.useInfiniteQuery(
    "get",
    APPROVALS,
    {
      params: {
        query: {
          state: tab === "open" ? ["open"] : [...CLOSED],
          // Open ones: the longest wait first. Closed ones: the latest first.
          order_by: [tab === "open" ? "id" : "-id"],
          limit: PAGE,
          ...(dag && { dag_id: dag }),
          ...(assignee && { assignee }),
        },
      },
    },
    {
      initialPageParam: "",
      getNextPageParam: (last) => last.next_cursor ?? undefined,
      placeholderData: keepPreviousData,
    },
  );
  const rows = useMemo(() => (list.data?.pages ?? []).flatMap(({ approvals }) => approvals), [list.data]);
  const isFiltered = dag !== undefined || assignee !== undefined;
  return (
    <>
      <PageHeader
        title="Approvals"
        facts="Open a question to read it and to answer. The task then goes on."
        actions={
          <>
            {dag && <Button onClick={() => setSearch({ dag: undefined })}>DAG {dag} ✕</Button>}
            {assignee && assignee !== user && (
              <Button onClick={() => setSearch({ assignee: undefined })}>Assigned to {assignee} ✕</Button>
            )}
            <label className="flex items-center gap-1.5">
              <input
                type="checkbox"
                checked={assignee === user}
                onChange={(event) => setSearch({ assignee: event.target.checked ? user : undefined })}
              />
              Assigned to me
            </label>
          </>
        }
      />
      <TabLinks
        label="Approvals by state"
        selected={tab}
        tabs={[
          { id: "open", label: "Open" },
          { id: "closed", label: "Answered" },
        ]}
      />
      <div className="relative flex min-h-0 flex-1">
        <div className="min-w-0 flex-1">
          <Loads query={list}>
            {() =>
              rows.length === 0 ? (
                isFiltered ? (
                  <Empty title="No approval matches" />
                ) : (
                  <NoApprovals isOpen={tab === "open"} />
                )
              ) : (
                <DataTable
                  label={tab === "open" ? "Open approvals" : "Answered approvals"}
                  columns={tab === "open" ? OPEN_COLUMNS : CLOSED_COLUMNS}
                  rows={rows}
                  rowKey={({ id }) => id}
                  onOpen={({ id }) => setSearch({ approval: id })}
                  isOpen={({ id }) => String(id) === opened}
                  footer={
                    <ListFooter
                      shown={rows.length}
                      total={list.data?.pages[0]?.total_entries}
                      hasMore={list.hasNextPage}
                      isLoading={list.isFetchingNextPage}
                      onMore={list.fetchNextPage}
                    />
                  }
                />
              )
            }
          </Loads>
        </div>
        {opened !== undefined && Number.isSafeInteger(Number(opened)) && (
          <ApprovalPane key={opened} id={Number(opened)} onClose={() => setSearch({ approval: undefined })} />
        )}
      </div>
    </>
  );
}

function NoApprovals({ isOpen }: { readonly isOpen: boolean }) {
  return (
    <Empty
      title={isOpen ? "Nothing needs an answer" : "No approval was answered yet"}
      command={isOpen ? "tradewind approvals list" : "tradewind approvals list --all"}
    >
      A task that asks a person appears here with its question and its form. In a DAG:{" "}
      <code>
        d.approval("publish", {"{"} title: "Publish the report?" {"}"})
      </code>
    </Empty>
  );
}

const TITLE: Column<Approval> = {
  id: "title",
  header: "Question",
  cell: ({ id, problem, title }) => (
    <span className="flex max-w-[56ch] min-w-0 items-baseline gap-2 max-sm:max-w-[26ch]">
      <Link
        to="."
        search={(before: Record<string, unknown>) => ({ ...before, approval: id })}
        className="truncate font-medium hover:underline"
        title={title}
      >
        {title}
      </Link>
      {problem !== null && <span className="shrink-0 text-warn">asked again</span>}
    </span>
  ),
};

const TASK: Column<Approval> = {
  id: "task",
  header: "Task",
  from: "md",
  cell: (row) => <TaskLink row={row} />,
};

const RUN: Column<Approval> = {
  id: "run",
  header: "Run",
  from: "xl",
  cell: ({ dag_id, dag_run_id }) => (
    <Link
      to={runPath(dag_id, dag_run_id)}
      title={dag_run_id}
      className="block max-w-[24ch] truncate font-mono text-muted hover:underline"
    >
      <RunTime id={dag_run_id} />
    </Link>
  ),
};

/** Of a generated id, which would be cut off where it differs. */
function RunTime({ id }: { readonly id: string }) {
  const { zone } = usePreferences();
  const at = timeOfId(id);
  return at === null ? id : shortDate(Math.floor(at / 1_000) * 1_000, zone);
}

const OPEN_COLUMNS: readonly Column<Approval>[] = [
  TITLE,
  TASK,
  RUN,
  {
    id: "who",
    header: "Who may answer",
    from: "lg",
    cell: (row) => (
      <span className="block max-w-[30ch] truncate" title={whoText(row)}>
        {whoText(row)}
        {!row.may_answer && <span className="text-muted">, not you</span>}
      </span>
    ),
  },
  { id: "since", header: "Since", width: "100px", cell: ({ opened_at }) => <Ago at={opened_at} /> },
  {
    id: "until",
    header: "Until",
    width: "120px",
    from: "sm",
    cell: ({ expires_at }) => <Ago at={expires_at} fallback="no timeout" />,
  },
];

const CLOSED_COLUMNS: readonly Column<Approval>[] = [
  TITLE,
  { id: "state", header: "Result", width: "100px", cell: stateText },
  {
    id: "by",
    header: "By",
    width: "140px",
    from: "sm",
    cell: ({ answered_by }) => <span className="block max-w-[20ch] truncate">{answered_by ?? "–"}</span>,
  },
  { id: "closed", header: "When", width: "100px", cell: ({ closed_at }) => <Ago at={closed_at} /> },
  {
    id: "comment",
    header: "Comment",
    from: "lg",
    cell: ({ comment }) => (
      <span className="block max-w-[40ch] truncate text-muted" title={comment ?? undefined}>
        {comment}
      </span>
    ),
  },
  TASK,
  RUN,
];
