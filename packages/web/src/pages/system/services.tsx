import { Ago } from "../../time/time.tsx";
import { type Column, DataTable } from "../../ui/data-table.tsx";
import { Empty } from "../../ui/panels.tsx";
import { Alive } from "./alive.tsx";
import { type Job, serviceName } from "./system.ts";

export function Services({ jobs }: { readonly jobs: readonly Job[] }) {
  if (jobs.length === 0)
    return (
      <Empty title="No service is running" command="tradewind scheduler">
        Schedulers, triggerers, DAG processors, API servers and workers appear here while they run.
      </Empty>
    );
  return <DataTable label="Services" columns={COLUMNS} rows={jobs} rowKey={({ id }) => id} />;
}

/** A scheduler that starts no more tasks, and ends when those that it runs have ended. */
function isDraining({ facts, is_alive }: Job): boolean {
  return is_alive && (facts as { readonly draining?: boolean } | null)?.draining === true;
}

const COLUMNS: readonly Column<Job>[] = [
  {
    id: "kind",
    header: "Service",
    cell: ({ job_type }) => <span className="font-medium">{serviceName(job_type)}</span>,
  },
  { id: "id", header: "Id", numeric: true, width: "60px", cell: ({ id }) => id },
  {
    id: "alive",
    header: "State",
    width: "140px",
    cell: (job) => <Alive isAlive={job.is_alive} {...(isDraining(job) && { word: "draining" })} />,
  },
  {
    id: "beat",
    header: "Heartbeat",
    width: "120px",
    cell: ({ latest_heartbeat }) => <Ago at={latest_heartbeat} />,
  },
  {
    id: "started",
    header: "Started",
    width: "120px",
    from: "md",
    cell: ({ start_date }) => <Ago at={start_date} />,
  },
  {
    id: "host",
    header: "Host",
    from: "sm",
    cell: ({ hostname, pid }) => (
      <span className="text-muted">
        {hostname}, process {pid}
      </span>
    ),
  },
  { id: "version", header: "Version", width: "100px", from: "lg", cell: ({ version }) => version },
];
