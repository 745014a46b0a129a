import { Link } from "@tanstack/react-router";
import { dagPath, taskPath } from "../app/paths.ts";

interface InstanceRow {
  readonly dag_id: string;
  readonly dag_run_id: string;
  readonly task_id: string;
  readonly map_index: number;
  readonly rendered_map_index: string | null;
}

/** DAG and task instance, each a link; a mapped instance with its label or index. */
export function TaskLink({ row }: { readonly row: InstanceRow }) {
  return (
    <span className="flex min-w-0 gap-1">
      <Link to={dagPath(row.dag_id)} className="text-muted hover:underline">
        {row.dag_id}
      </Link>
      <span className="text-faint">›</span>
      <Link
        to={taskPath(row.dag_id, row.dag_run_id, row.task_id)}
        search={row.map_index < 0 ? {} : { map: row.map_index }}
        className="font-medium hover:underline"
      >
        {row.task_id}
        {row.map_index >= 0 && `[${row.rendered_map_index ?? row.map_index}]`}
      </Link>
    </span>
  );
}
