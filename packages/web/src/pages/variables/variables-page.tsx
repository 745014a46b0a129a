/** Values that DAGs read at run time. */
import { Trash2 } from "lucide-react";
import { useMemo, useState } from "react";
import { commandOf } from "../../actions/command-text.ts";
import { Confirm } from "../../actions/confirm.tsx";
import { $api, api } from "../../api/client.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { useReload } from "../../live/reload.ts";
import { IconButton } from "../../ui/button.tsx";
import type { Column } from "../../ui/data-table.tsx";
import { NamedListHeader } from "../../ui/named-list-header.tsx";
import { offsetPages } from "../../ui/offset-pages.ts";
import { PagedTable } from "../../ui/paged-table.tsx";
import { Empty } from "../../ui/panels.tsx";
import { EditVariable } from "./edit-variable.tsx";
import { VARIABLES, type Variable } from "./variable.ts";

export default function VariablesPage() {
  const [search] = useSearchState();
  const q = textOf(search, "q") ?? "";
  const [edited, setEdited] = useState<Variable | "new" | null>(null);
  const [deleted, setDeleted] = useState<Variable | null>(null);
  const list = $api.useInfiniteQuery(
    "get",
    VARIABLES,
    { params: { query: { limit: 100, ...(q && { variable_key_pattern: `%${q}%` }) } } },
    {
      ...offsetPages(
        (page: { variables: readonly Variable[]; total_entries: number }) => page.variables,
        (page) => page.total_entries,
      ),
    },
  );
  const rows = useMemo(() => (list.data?.pages ?? []).flatMap(({ variables }) => variables), [list.data]);
  useReload("settings", [VARIABLES]);
  const columns = useMemo(() => columnsOf(setEdited, setDeleted), []);
  return (
    <>
      <NamedListHeader
        title="Variables"
        facts={
          <span>
            Tasks read them with <code>await ctx.variable(key)</code>. Values are sealed in the database.
          </span>
        }
        filter="Filter by key"
        create="New variable"
        onCreate={() => setEdited("new")}
      />
      <div className="min-h-0 flex-1 border-t border-line">
        <PagedTable
          query={list}
          empty={
            <Empty
              title={q ? "No variable has this key" : "There is no variable yet"}
              command="tradewind variables set region eu"
            >
              A variable is a named value of this installation, for example a region or a limit, that tasks
              read while they run.
            </Empty>
          }
          label="Variables"
          columns={columns}
          rows={rows}
          rowKey={({ key }) => key}
          onOpen={setEdited}
        />
      </div>
      {edited !== null && (
        <EditVariable variable={edited === "new" ? null : edited} onClose={() => setEdited(null)} />
      )}
      {deleted !== null && (
        <Confirm
          title={`Delete variable ${deleted.key}?`}
          action={`Delete variable ${deleted.key}`}
          done={`Variable ${deleted.key} is deleted`}
          reload={[VARIABLES]}
          run={() =>
            api.DELETE("/api/v2/variables/{variable_key}", {
              params: { path: { variable_key: deleted.key } },
            })
          }
          cli={commandOf("tradewind", "variables", "delete", deleted.key, "--yes")}
          request={{ method: "DELETE", path: `${VARIABLES}/${encodeURIComponent(deleted.key)}` }}
          onClose={() => setDeleted(null)}
        >
          <p>A task that reads a missing variable fails, and is not retried.</p>
        </Confirm>
      )}
    </>
  );
}

function columnsOf(
  onEdit: (variable: Variable) => void,
  onDelete: (variable: Variable) => void,
): readonly Column<Variable>[] {
  return [
    {
      id: "key",
      header: "Key",
      cell: (variable) => (
        <button
          type="button"
          className="font-mono font-medium hover:underline"
          onClick={() => onEdit(variable)}
        >
          {variable.key}
        </button>
      ),
    },
    {
      id: "value",
      header: "Value",
      cell: ({ value }) => (
        <code className="block max-w-[70ch] truncate text-muted" title={value ?? undefined}>
          {value}
        </code>
      ),
    },
    {
      id: "description",
      header: "Description",
      from: "md",
      cell: ({ description }) => (
        <span className="block max-w-[50ch] truncate text-muted">{description}</span>
      ),
    },
    {
      id: "actions",
      header: <span className="sr-only">Actions</span>,
      width: "56px",
      cell: (variable) => (
        <IconButton label={`Delete ${variable.key}`} onClick={() => onDelete(variable)}>
          <Trash2 />
        </IconButton>
      ),
    },
  ];
}
