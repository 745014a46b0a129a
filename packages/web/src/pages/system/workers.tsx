import { Link } from "@tanstack/react-router";
import { apiPath } from "../../actions/api-call.ts";
import { change } from "../../actions/change.ts";
import { commandOf } from "../../actions/command-text.ts";
import { Twin } from "../../actions/twin.tsx";
import { $api } from "../../api/client.ts";
import { taskPath } from "../../app/paths.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { count, duration } from "../../time/format.ts";
import { Ago } from "../../time/time.tsx";
import { Button } from "../../ui/button.tsx";
import { type Column, DataTable } from "../../ui/data-table.tsx";
import { Meter } from "../../ui/meter.tsx";
import { Facts } from "../../ui/page.tsx";
import { Pane } from "../../ui/pane.tsx";
import { Empty, Loads } from "../../ui/panels.tsx";
import { Alive } from "./alive.tsx";
import type { Worker } from "./system.ts";

export function Workers({ workers }: { readonly workers: readonly Worker[] }) {
  const [search, setSearch] = useSearchState();
  const open = textOf(search, "worker");
  if (workers.length === 0)
    return (
      <Empty title="There is no worker" command="tradewind worker --queues default --concurrency 8">
        Workers run tasks of the queue executor on any machine. Tasks of the local executor run beside their
        scheduler and need none.
      </Empty>
    );
  const shown = workers.find(({ id }) => String(id) === open);
  return (
    <div className="flex h-full">
      <div className="min-w-0 flex-1">
        <DataTable
          label="Workers"
          columns={COLUMNS}
          rows={workers}
          rowKey={({ id }) => id}
          onOpen={({ id }) => setSearch({ worker: id })}
          isOpen={({ id }) => String(id) === open}
        />
      </div>
      {shown && <WorkerPane worker={shown} onClose={() => setSearch({ worker: undefined })} />}
    </div>
  );
}

const COLUMNS: readonly Column<Worker>[] = [
  { id: "name", header: "Worker", cell: ({ name }) => <span className="font-medium">{name}</span> },
  {
    id: "state",
    header: "State",
    width: "110px",
    cell: ({ state }) => <Alive isAlive={state === "alive" || state === "draining"} word={state} />,
  },
  {
    id: "slots",
    header: "Slots used",
    cell: ({ running, slots }) => (
      <span className="flex items-center gap-3">
        <span className="w-[80px] max-sm:hidden">
          <Meter
            label={`${running} of ${slots} slots are used`}
            total={slots}
            parts={[{ value: running, color: "--s-running" }]}
          />
        </span>
        <span className="whitespace-nowrap tabular-nums">
          {count(running)} of {count(slots)}
        </span>
      </span>
    ),
  },
  { id: "queues", header: "Queues", cell: ({ queues }) => queues?.join(", ") ?? "–" },
  {
    id: "beat",
    header: "Heartbeat",
    width: "130px",
    from: "sm",
    cell: ({ heartbeat_age }) => `${duration(heartbeat_age * 1_000)} ago`,
  },
  {
    id: "host",
    header: "Host",
    from: "md",
    cell: ({ hostname }) => <span className="text-muted">{hostname}</span>,
  },
  { id: "version", header: "Version", width: "90px", from: "lg", cell: ({ version }) => version },
];

function WorkerPane({ worker, onClose }: { readonly worker: Worker; readonly onClose: () => void }) {
  const detail = $api.useQuery("get", "/api/v2/workers/{worker_id}", {
    params: { path: { worker_id: worker.id } },
  });
  const isDraining = worker.state === "draining";
  const ended = worker.state === "dead" || worker.state === "stopped";
  const request = {
    method: "POST",
    path: apiPath`/workers/${worker.id}/drain`,
    body: { is_draining: !isDraining },
  } as const;
  const drain = () =>
    change({
      request,
      done: isDraining ? `${worker.name} gets work again` : `${worker.name} gets no more work`,
      reload: ["/api/v2/workers", "/api/v2/workers/{worker_id}"],
    });
  return (
    <Pane title={worker.name} onClose={onClose}>
      <div className="flex flex-col gap-4 p-4">
        <Facts
          rows={[
            ["State", worker.state],
            ["Host", `${worker.hostname}, process ${worker.pid}`],
            ["Started", <Ago key="started" at={worker.start_date} />],
            ["Queues", worker.queues?.join(", ") ?? "–"],
            [
              "Labels",
              Object.entries(worker.labels)
                .map(([name, value]) => `${name}=${value}`)
                .join(", ") || "–",
            ],
            ["Version", worker.version],
          ]}
        />
        {!ended && (
          <div className="flex gap-2">
            <Button onClick={() => void drain()}>
              {isDraining ? "Give it work again" : "Drain this worker"}
            </Button>
            <Twin
              cli={commandOf("tradewind", "workers", "drain", worker.name, isDraining && "--undo")}
              request={request}
            />
          </div>
        )}
        <section className="flex flex-col gap-1.5">
          <h3>Running here</h3>
          <Loads query={detail}>
            {({ attempts }) =>
              attempts.length === 0 ? (
                <p className="text-muted">Nothing</p>
              ) : (
                <ul>
                  {attempts.map((attempt) => (
                    <li key={attempt.id} className="flex justify-between gap-2 border-b border-line py-1">
                      {attempt.task_id === null ? (
                        <span>{attempt.kind}</span>
                      ) : (
                        <Link
                          to={taskPath(attempt.dag_id, attempt.dag_run_id, attempt.task_id)}
                          className="min-w-0 truncate hover:underline"
                        >
                          {attempt.dag_id} › {attempt.task_id}
                          {attempt.map_index !== null && attempt.map_index >= 0 && `[${attempt.map_index}]`}
                        </Link>
                      )}
                      <span className="text-muted">
                        <Ago at={attempt.claimed_at} />
                      </span>
                    </li>
                  ))}
                </ul>
              )
            }
          </Loads>
        </section>
      </div>
    </Pane>
  );
}
