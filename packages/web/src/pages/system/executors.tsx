import { count, duration } from "../../time/format.ts";
import { type Column, DataTable } from "../../ui/data-table.tsx";
import { Meter } from "../../ui/meter.tsx";
import { Alive } from "./alive.tsx";
import type { Executor } from "./system.ts";

type Row = Executor["queues"][number] & { readonly executor: Executor; readonly isFirst: boolean };

/** One row per queue: what runs, what waits, who serves it. */
export function Executors({ executors }: { readonly executors: readonly Executor[] }) {
  const rows = executors.flatMap((executor): Row[] =>
    (executor.queues.length > 0 ? executor.queues : [emptyQueue(executor)]).map((queue, index) => ({
      ...queue,
      executor,
      isFirst: index === 0,
    })),
  );
  return (
    <DataTable
      label="Executors"
      columns={COLUMNS}
      rows={rows}
      rowKey={(row) => `${row.executor.name} ${row.queue}`}
    />
  );
}

function emptyQueue(executor: Executor): Executor["queues"][number] {
  return {
    queue: "–",
    running: executor.running,
    waiting: executor.waiting,
    slots: executor.slots,
    free_slots: executor.slots === null ? null : executor.slots - executor.running,
    workers: null,
    oldest_wait: 0,
  };
}

const COLUMNS: readonly Column<Row>[] = [
  {
    id: "name",
    header: "Executor",
    cell: ({ executor, isFirst }) =>
      isFirst && (
        <span className="font-medium">
          {executor.name}
          {executor.is_default && <span className="font-normal text-muted"> (default)</span>}
        </span>
      ),
  },
  {
    id: "type",
    header: "Type",
    width: "110px",
    from: "sm",
    cell: ({ executor, isFirst }) => isFirst && executor.type,
  },
  {
    id: "health",
    header: "Health",
    width: "110px",
    cell: ({ executor, isFirst }) =>
      isFirst && <Alive isAlive={executor.health === "healthy"} word={executor.health} />,
  },
  { id: "queue", header: "Queue", cell: ({ queue }) => queue },
  {
    id: "slots",
    header: "Slots used",
    cell: ({ running, slots }) => (
      <span className="flex items-center gap-3">
        <span className="w-[90px] max-sm:hidden">
          <Meter
            label={`${running} of ${slots ?? "any number of"} slots are used`}
            total={slots ?? 0}
            parts={[{ value: running, color: "--s-running" }]}
          />
        </span>
        <span className="whitespace-nowrap tabular-nums">
          {count(running)} of {slots === null ? "∞" : count(slots)}
        </span>
      </span>
    ),
  },
  { id: "waiting", header: "Waiting", numeric: true, width: "70px", cell: ({ waiting }) => count(waiting) },
  {
    id: "oldest",
    header: "Longest",
    numeric: true,
    width: "100px",
    from: "md",
    cell: ({ waiting, oldest_wait }) => (waiting === 0 ? "–" : duration(oldest_wait * 1_000)),
  },
  {
    id: "workers",
    header: "Workers",
    numeric: true,
    width: "90px",
    from: "md",
    cell: ({ workers }) => (workers === null ? "–" : count(workers)),
  },
];
