/** The columns of lists of changes. */
import { Link } from "@tanstack/react-router";
import type { components } from "../../api/schema.gen.ts";
import { dagPath, runPath, taskPath } from "../../app/paths.ts";
import { Exact } from "../../time/time.tsx";
import type { Column } from "../../ui/data-table.tsx";

type Entry = components["schemas"]["EventLogResponse"];

export const AUDIT_COLUMNS: readonly Column<Entry>[] = [
  { id: "when", header: "When", width: "160px", cell: ({ when }) => <Exact at={when} /> },
  {
    id: "who",
    header: "Who",
    width: "140px",
    cell: ({ owner }) => <span className="font-medium">{owner ?? "–"}</span>,
  },
  { id: "what", header: "Action", width: "200px", cell: ({ event }) => event.replaceAll("_", " ") },
  { id: "about", header: "About", cell: (entry) => <About entry={entry} /> },
  {
    id: "details",
    header: "Details",
    from: "lg",
    cell: ({ extra }) => (
      <code className="block max-w-[60ch] truncate text-muted" title={extra ?? undefined}>
        {extra}
      </code>
    ),
  },
];

function About({
  entry: { dag_id: dag, run_id: run, task_id: task, map_index: map },
}: {
  readonly entry: Entry;
}) {
  if (dag === null) return null;
  const isInstance = run !== null && task !== null;
  return (
    <span className="flex max-w-[60ch] gap-1">
      <Link to={dagPath(dag)} className="hover:underline">
        {dag}
      </Link>
      {run !== null && (
        <>
          <span className="text-faint">›</span>
          <Link to={runPath(dag, run)} className="truncate font-mono text-muted hover:underline">
            {run}
          </Link>
        </>
      )}
      {isInstance && (
        <>
          <span className="text-faint">›</span>
          <Link
            to={taskPath(dag, run, task)}
            search={map === null || map < 0 ? {} : { map }}
            className="hover:underline"
          >
            {task}
          </Link>
        </>
      )}
    </span>
  );
}
