/** Values that DAGs read at run time. */
import { useMemo } from "react";
import { apiPath } from "../../actions/api-call.ts";
import { commandOf } from "../../actions/command-text.ts";
import { Confirm } from "../../actions/confirm.tsx";
import { $api } from "../../api/client.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { useReload } from "../../live/reload.ts";
import { HIDDEN, VARIABLE_KIND } from "../../settings/kinds.ts";
import { NamedListPage } from "../../settings/named-list-page.tsx";
import type { Column } from "../../ui/data-table.tsx";
import { offsetPages } from "../../ui/offset-pages.ts";
import { Empty } from "../../ui/panels.tsx";
import { EditVariable } from "./edit-variable.tsx";
import { VARIABLES, type Variable } from "./variable.ts";

export default function VariablesPage() {
  const [search] = useSearchState();
  const q = textOf(search, "q") ?? "";
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
  return (
    <NamedListPage
      kind={VARIABLE_KIND}
      title="Variables"
      facts={
        <span>
          Tasks read them with <code>await ctx.variable(key)</code>. Values are sealed in the database.
        </span>
      }
      query={list}
      rows={rows}
      nameHeader="Key"
      nameOf={nameOf}
      columns={COLUMNS}
      empty={
        <Empty
          title={q ? "No variable has this key" : "There is no variable yet"}
          command="tradewind variables set region eu"
        >
          A variable is a named value of this installation, for example a region or a limit, that tasks read
          while they run.
        </Empty>
      }
      edit={(variable, onClose) => <EditVariable variable={variable} onClose={onClose} />}
      remove={(variable, onClose) => <DeleteVariable variable={variable} onClose={onClose} />}
    />
  );
}

const nameOf = ({ key }: Variable) => key;

function DeleteVariable({
  variable: { description, key, value },
  onClose,
}: {
  readonly variable: Variable;
  readonly onClose: () => void;
}) {
  return (
    <Confirm
      title={`Delete variable ${key}?`}
      action={`Delete variable ${key}`}
      done={`Variable ${key} is deleted`}
      reload={[VARIABLES]}
      request={{ method: "DELETE", path: apiPath`/variables/${key}` }}
      undo={value === HIDDEN ? null : { method: "POST", path: VARIABLES, body: { key, value, description } }}
      cli={commandOf("tradewind", "variables", "delete", key, "--yes")}
      onClose={onClose}
    >
      <p>A task that reads a missing variable fails, and is not retried.</p>
    </Confirm>
  );
}

const COLUMNS: readonly Column<Variable>[] = [
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
    cell: ({ description }) => <span className="block max-w-[50ch] truncate text-muted">{description}</span>,
  },
];
