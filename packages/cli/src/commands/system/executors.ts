import { Command } from "@commander-js/extra-typings";
import { type Executor, readExecutors } from "../../client/executors.ts";
import { CliError } from "../../errors.ts";
import { examples } from "../../examples.ts";
import { EXIT } from "../../exit-code.ts";
import { type Column, renderTable } from "../../output/table.ts";
import { span } from "../../output/when.ts";
import type { Session } from "../../session.ts";

type Queue = Executor["queues"][number];

export function command(session: Session) {
  const executors = new Command("executors")
    .description("list and inspect executors: where tasks run")
    .addHelpText("after", examples("tradewind executors list", "tradewind executors show queue"));

  executors
    .command("list")
    .description("list the executors of the live schedulers, with slots, tasks and health")
    .addHelpText("after", examples("tradewind executors list"))
    .action(async () => {
      const items = await readExecutors(session.client);
      await session.printList({ items, total: items.length }, columns(session), "No scheduler is alive.");
    });

  executors
    .command("show")
    .description("show an executor, its problems and its queues")
    .addHelpText("after", examples("tradewind executors show queue"))
    .argument("<name>")
    .action(async (name) => {
      const all = await readExecutors(session.client);
      const found = all.find((executor) => executor.name === name);
      if (found === undefined)
        throw new CliError("TW_CLI_NO_SUCH_EXECUTOR", `no live scheduler has the executor ${name}.`, {
          exit: EXIT.notFound,
          remedy: "`tradewind executors list` lists them",
        });
      await show(session, found);
    });

  return executors;
}

async function show(session: Session, executor: Executor): Promise<void> {
  const { terminal } = session;
  await session.printObject(executor, [
    ["executor", `${executor.name}${executor.is_default ? " (default)" : ""}`],
    ["type", executor.type],
    ["schedulers", String(executor.schedulers)],
    ["slots", slotsOf(executor)],
    ["running", String(executor.running)],
    ["waiting", String(executor.waiting)],
    ["health", executor.health],
    ...executor.problems.map(
      ({ message, remedy }) => ["problem", remedy === null ? message : `${message}; ${remedy}`] as const,
    ),
  ]);
  if (session.format !== "table" || executor.queues.length === 0) return;
  terminal.data("");
  const [head, ...lines] = renderTable(executor.queues, QUEUE_COLUMNS, terminal.width);
  terminal.data(terminal.paint("bold", head!));
  for (const line of lines) terminal.data(line);
}

const QUEUE_COLUMNS: readonly Column<Queue>[] = [
  { title: "QUEUE", value: ({ queue }) => queue },
  { title: "WAITING", value: ({ waiting }) => String(waiting), align: "right" },
  { title: "OLDEST", value: ({ oldest_wait, waiting }) => (waiting === 0 ? "-" : span(oldest_wait)) },
  { title: "RUNNING", value: ({ running }) => String(running), align: "right" },
  { title: "WORKERS", value: ({ workers }) => String(workers ?? "-"), align: "right" },
  { title: "SLOTS", value: ({ slots }) => String(slots ?? "-"), align: "right" },
  { title: "FREE", value: ({ free_slots }) => String(free_slots ?? "-"), align: "right" },
];

function slotsOf({ slots }: Executor): string {
  return slots === null ? "unlimited" : String(slots);
}

function columns({ terminal }: Session): readonly Column<Executor>[] {
  return [
    { title: "NAME", value: ({ is_default, name }) => (is_default ? `${name} (default)` : name) },
    { title: "TYPE", value: ({ type }) => type ?? "-" },
    { title: "SLOTS", value: slotsOf, align: "right" },
    { title: "RUNNING", value: ({ running }) => String(running), align: "right" },
    { title: "WAITING", value: ({ waiting }) => String(waiting), align: "right" },
    {
      title: "HEALTH",
      value: ({ health }) => health,
      paint: ({ health }, cell) => (health === "healthy" ? cell : terminal.paint("yellow", cell)),
    },
    { title: "PROBLEM", value: ({ problems }) => problems[0]?.message ?? "", flexible: true, optional: true },
  ];
}
