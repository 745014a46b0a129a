/** Waits by what they wait for: one line per kind of trigger, and per signal. Opens the list of a group. */
import { keepPreviousData } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { $api } from "../../api/client.ts";
import type { components } from "../../api/schema.gen.ts";
import { useSearchState } from "../../app/search.ts";
import { useReload } from "../../live/reload.ts";
import { count } from "../../time/format.ts";
import { Ago } from "../../time/time.tsx";
import { type Column, DataTable } from "../../ui/data-table.tsx";
import { Loads } from "../../ui/panels.tsx";
import { kindName, signalName } from "./wait.ts";

type Groups = components["schemas"]["UiWaitGroups"];
type Group = Groups["groups"][number];

export function WaitGroups({ dag, empty }: { readonly dag: string | undefined; readonly empty: ReactNode }) {
  const [, setSearch] = useSearchState();
  const query = $api.useQuery(
    "get",
    "/ui/waiting/groups",
    { params: { query: dag ? { dag_id: dag } : {} } },
    { placeholderData: keepPreviousData },
  );
  useReload("waiting", ["/ui/waiting/groups"]);
  return (
    <Loads query={query}>
      {({ groups, ...totals }) =>
        groups.length === 0 ? (
          empty
        ) : (
          <DataTable
            label="Groups of waiting tasks"
            columns={COLUMNS}
            rows={groups}
            rowKey={({ kind, signal }) => `${kind} ${signal}`}
            onOpen={(group) => setSearch(listOf(group), { replace: false })}
            footer={<p className="px-1.5 text-sm text-muted">{totalsText(groups.length, totals)}</p>}
          />
        )
      }
    </Loads>
  );
}

/** The search parameters of the list of a group's tasks. */
function listOf({ kind, signal }: Group) {
  return signal === null
    ? { view: undefined, kind, signal: undefined }
    : { view: undefined, kind: undefined, signal };
}

function totalsText(shown: number, { is_partial, total_groups, total_waiting }: Omit<Groups, "groups">) {
  const groups = shown < total_groups ? `${count(shown)} of ${count(total_groups)} groups` : null;
  return [
    groups ?? `${count(total_groups)} ${total_groups === 1 ? "group" : "groups"}`,
    is_partial
      ? `only the ${count(total_waiting)} longest waits are counted`
      : `${count(total_waiting)} waiting ${total_waiting === 1 ? "task" : "tasks"}`,
  ].join(", ");
}

const COLUMNS: readonly Column<Group>[] = [
  {
    id: "for",
    header: "Waits for",
    cell: (group) => (
      <Link
        to="."
        search={((before: object) => ({ ...before, ...listOf(group) })) as never}
        className="flex min-w-0 flex-wrap items-baseline gap-x-2 hover:underline"
      >
        <span className="whitespace-nowrap">{kindName(group.kind)}</span>
        {group.signal !== null && (
          <code className="min-w-0 max-w-[60ch] font-medium break-words">{signalName(group.signal)}</code>
        )}
      </Link>
    ),
  },
  {
    id: "waiting",
    header: "Tasks",
    numeric: true,
    width: "70px",
    cell: ({ waiting }) => <b className="font-medium">{count(waiting)}</b>,
  },
  { id: "since", header: "Longest since", width: "110px", cell: ({ since }) => <Ago at={since} /> },
  {
    id: "timeout",
    header: "Next timeout",
    width: "130px",
    from: "sm",
    cell: ({ timeout_at }) => <Ago at={timeout_at} fallback="none" />,
  },
];
