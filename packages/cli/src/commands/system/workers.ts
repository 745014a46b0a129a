import { Command, Option } from "@commander-js/extra-typings";
import { instanceText } from "@tradewind/sdk/wording";
import { path } from "../../client/client.ts";
import { findWorker, LIVE, WORKER_ARGUMENT, type Worker, type WorkerDetail } from "../../client/workers.ts";
import { examples } from "../../examples.ts";
import { wholeNumber } from "../../input/values.ts";
import { type Column, renderTable } from "../../output/table.ts";
import { moment, relativeTime, span } from "../../output/when.ts";
import type { Session } from "../../session.ts";

const STATES = ["alive", "draining", "dead", "stopped"] as const;
type Attempt = WorkerDetail["attempts"][number];

export function command(session: Session) {
  const workers = new Command("workers")
    .description("list, inspect, drain and remove workers: processes that run tasks of remote executors")
    .addHelpText(
      "after",
      examples("tradewind workers list", "tradewind workers drain gpu-1", "tradewind workers remove gpu-1"),
    );

  workers
    .command("list")
    .description("list the live workers")
    .addHelpText("after", examples("tradewind workers list --queue gpu", "tradewind workers list --all"))
    .option("--all", "also workers that have ended")
    .addOption(
      new Option("--state <state...>", "only workers in these states").choices(STATES).conflicts("all"),
    )
    .option("--queue <queue...>", "only workers that serve one of these queues")
    .option("--limit <n>", "maximum number of rows; 0 = no limit", wholeNumber(0), 50)
    .addHelpText(
      "after",
      "\nStates: alive · draining = starts nothing more · dead = its lease has expired, or it was removed · stopped = it signed off",
    )
    .action(async ({ all, limit, queue, state }) => {
      const listed = await session.client.list<Worker>({
        path: "/workers",
        key: "workers",
        what: "cannot list the workers",
        query: { state: all ? undefined : (state ?? LIVE), queue, order_by: all ? "-id" : "name" },
        limit,
      });
      await session.printList(listed, columns(session), "No workers match.");
    });

  workers
    .command("show")
    .description("show a worker and what it is running")
    .addHelpText("after", examples("tradewind workers show gpu-1"))
    .argument("<worker>", WORKER_ARGUMENT)
    .action(async (given) => show(session, await findWorker(session.client, given)));

  workers
    .command("drain")
    .description("let a worker finish what it is running, and start nothing more")
    .addHelpText("after", examples("tradewind workers drain gpu-1", "tradewind workers drain gpu-1 --undo"))
    .argument("<worker>", WORKER_ARGUMENT)
    .option("--undo", "let it start tasks again")
    .action(async (given, { undo = false }) => {
      const { id, name } = await findWorker(session.client, given);
      const worker = await session.client.post<WorkerDetail>(path`/workers/${id}/drain`, {
        what: `cannot drain the worker ${given}`,
        body: { is_draining: !undo },
      });
      const still = worker.running === 1 ? "1 task is" : `${worker.running} tasks are`;
      await session.printDone(
        worker,
        undo ? `Worker ${name} starts tasks again.` : `Worker ${name} drains: ${still} still running.`,
      );
    });

  workers
    .command("remove")
    .description(
      "end a worker at once: what it is running is lost, and starts elsewhere without using up a try",
    )
    .addHelpText("after", examples("tradewind workers remove gpu-1 --yes"))
    .argument("<worker>", WORKER_ARGUMENT)
    .action(async (given) => {
      const { hostname, id, name, running } = await findWorker(session.client, given);
      const lost = running === 1 ? "its task starts" : `its ${running} tasks start`;
      await session.confirm(
        `Remove worker ${name} on ${hostname}?${running === 0 ? "" : ` Elsewhere ${lost} again.`}`,
      );
      await session.client.delete(path`/workers/${id}`, { what: `cannot remove the worker ${given}` });
      await session.printDone({ id, name, removed: true }, `Worker ${name} removed.`);
    });

  return workers;
}

async function show(session: Session, worker: WorkerDetail): Promise<void> {
  const { terminal } = session;
  await session.printObject(worker, [
    ["worker", String(worker.id)],
    ["name", worker.name],
    ["state", worker.state],
    ["queues", queuesOf(worker)],
    ["labels", labelsOf(worker)],
    ["slots", `${worker.slots} (${worker.free_slots} free)`],
    ["host", `${worker.hostname}, process ${worker.pid}`],
    ["version", worker.version],
    ["started", moment(worker.start_date)],
    ["heartbeat", `${span(worker.heartbeat_age)} ago`],
    ["ended", worker.end_date && moment(worker.end_date)],
    ["running", String(worker.running)],
  ]);
  if (session.format !== "table" || worker.attempts.length === 0) return;
  terminal.data("");
  const [head, ...lines] = renderTable(worker.attempts, ATTEMPT_COLUMNS, terminal.width);
  terminal.data(terminal.paint("bold", head!));
  for (const line of lines) terminal.data(line);
}

const ATTEMPT_COLUMNS: readonly Column<Attempt>[] = [
  { title: "DAG", value: ({ dag_id }) => dag_id },
  { title: "RUN", value: ({ dag_run_id }) => dag_run_id },
  { title: "TASK", value: taskOf },
  { title: "TRY", value: ({ try_number }) => String(try_number), align: "right" },
  { title: "QUEUE", value: ({ queue }) => queue },
  { title: "SINCE", value: ({ claimed_at }) => relativeTime(claimed_at) },
  { title: "", value: ({ is_stopping }) => (is_stopping ? "stopping" : "") },
];

function taskOf({ kind, map_index: index, task_id: task }: Attempt): string {
  const name = task === null ? "run" : instanceText(task, index ?? -1, null);
  return kind === "attempt" ? name : `${name} (${kind === "callback" ? "callback" : "onSignal"})`;
}

function queuesOf({ queues }: Worker): string {
  return queues?.join(", ") ?? "one task";
}

function labelsOf({ labels }: Worker): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(", ");
}

function columns({ terminal }: Session): readonly Column<Worker>[] {
  return [
    { title: "ID", value: ({ id }) => String(id), align: "right" },
    { title: "NAME", value: ({ name }) => name },
    {
      title: "STATE",
      value: ({ state }) => state,
      paint: ({ state }, cell) => (state === "alive" ? cell : terminal.paint("yellow", cell)),
    },
    { title: "RUNNING", value: ({ running }) => String(running), align: "right" },
    { title: "SLOTS", value: ({ slots }) => String(slots), align: "right" },
    { title: "FREE", value: ({ free_slots }) => String(free_slots), align: "right" },
    { title: "HEARTBEAT", value: ({ heartbeat_age }) => `${span(heartbeat_age)} ago` },
    { title: "VERSION", value: ({ version }) => version },
    { title: "QUEUES", value: queuesOf },
    { title: "HOST", value: ({ hostname }) => hostname, optional: true },
    { title: "LABELS", value: labelsOf, flexible: true, optional: true },
  ];
}
