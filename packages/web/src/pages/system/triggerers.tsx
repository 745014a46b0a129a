import { count, duration } from "../../time/format.ts";
import { Ago } from "../../time/time.tsx";
import { type Column, DataTable } from "../../ui/data-table.tsx";
import { Fact } from "../../ui/page.tsx";
import { Empty } from "../../ui/panels.tsx";
import { Alive } from "./alive.tsx";
import type { Health, Job } from "./system.ts";

export function Triggerers({
  jobs,
  health,
}: {
  readonly jobs: readonly Job[];
  readonly health: Health["triggerer"] | undefined;
}) {
  if (jobs.length === 0)
    return (
      <Empty title="No triggerer is running" command="tradewind triggerer">
        A triggerer watches what deferred tasks wait for. Without one, they wait until their timeout.
      </Empty>
    );
  return (
    <div className="flex h-full flex-col">
      {health && (
        <div className="flex flex-wrap gap-x-6 gap-y-1 px-4 py-2 text-muted">
          <Fact name="Triggers">{count(health.triggers ?? 0)}</Fact>
          {health.capacity !== null && <Fact name="Capacity">{count(health.capacity)}</Fact>}
          <Fact name="Full triggerers">{count(health.full_triggerers ?? 0)}</Fact>
          <Fact name="Crashes of their processes">{count(health.process_crashes ?? 0)}</Fact>
          <Fact name="Suspected triggers">{count(health.suspected_triggers ?? 0)}</Fact>
        </div>
      )}
      <div className="min-h-0 flex-1">
        <DataTable label="Triggerers" columns={COLUMNS} rows={jobs} rowKey={({ id }) => id} />
      </div>
    </div>
  );
}

/** Facts that a triggerer reports with its heartbeat. */
function factOf(job: Job, name: string): number | null {
  const facts = job.facts as Readonly<Record<string, unknown>> | null;
  const value = facts?.[name];
  return typeof value === "number" ? value : null;
}

const fact = (name: string, header: string, unit = ""): Column<Job> => ({
  id: name,
  header,
  numeric: true,
  width: "110px",
  cell: (job) => {
    const value = factOf(job, name);
    return value === null ? "–" : `${count(Math.round(value))}${unit}`;
  },
});

const COLUMNS: readonly Column<Job>[] = [
  {
    id: "id",
    header: "Triggerer",
    cell: ({ id, hostname }) => (
      <span className="font-medium">
        {id} on {hostname}
      </span>
    ),
  },
  { id: "alive", header: "State", width: "120px", cell: (job) => <Alive isAlive={job.is_alive} /> },
  {
    id: "beat",
    header: "Heartbeat",
    width: "120px",
    from: "sm",
    cell: ({ latest_heartbeat }) => <Ago at={latest_heartbeat} />,
  },
  fact("triggers", "Triggers"),
  { ...fact("capacity", "Capacity"), from: "md" },
  fact("lagMs", "Loop lag", " ms"),
  { id: "blocked", header: "Blocked by", cell: (job) => <BlockedBy job={job} /> },
  { ...fact("crashes", "Crashes"), from: "sm" },
];

/** The trigger classes that have blocked the event loop since the triggerer started, the latest first. */
function BlockedBy({ job }: { readonly job: Job }) {
  const blockers = (job.facts as { readonly blockedBy?: readonly BlockedTrigger[] } | null)?.blockedBy ?? [];
  if (blockers.length === 0) return <span className="text-faint">none</span>;
  return (
    <ul>
      {blockers.map(({ count: times, kind, lastAt, longestMs, place }) => (
        <li key={kind ?? ""} title={place}>
          <span className="font-mono font-medium text-danger">{kind ?? "unknown code"}</span>{" "}
          <span className="text-muted">
            {times === 1 ? "once" : `${count(times)} times`}, up to {duration(longestMs)}, <Ago at={lastAt} />
          </span>
        </li>
      ))}
    </ul>
  );
}

interface BlockedTrigger {
  readonly kind: string | null;
  readonly count: number;
  readonly longestMs: number;
  readonly lastAt: string;
  readonly place: string;
}
