import { Command, Option } from "@commander-js/extra-typings";
import { path } from "../../client/client.ts";
import { requireNamed } from "../../client/named-filter.ts";
import type { Trigger } from "../../client/resources.ts";
import { examples } from "../../examples.ts";
import { wholeNumber } from "../../input/values.ts";
import type { Column } from "../../output/table.ts";
import { renderTable } from "../../output/table.ts";
import { moment, relativeTime } from "../../output/when.ts";
import type { Session } from "../../session.ts";
import { runnerName, waitColumns } from "./waiting.ts";

const STATES = ["hot", "cold", "timed", "unowned"] as const;

export function command(session: Session) {
  const triggers = new Command("triggers")
    .description("list the triggers that tasks and schedules wait for")
    .addHelpText("after", examples("tradewind triggers list --state unowned"));

  triggers
    .command("list")
    .description("list triggers")
    .addHelpText(
      "after",
      examples("tradewind triggers list --state hot unowned", "tradewind triggers list --kind http"),
    )
    .addOption(new Option("--state <state...>", "only triggers in these states").choices(STATES))
    .option("--kind <kind...>", "only triggers of these kinds")
    .option("--queue <queue...>", "only triggers of these queues")
    .option("--dag <dag>", "only triggers of this DAG's schedule")
    .option("--triggerer <job>", "only triggers of this triggerer (job number)", wholeNumber(1))
    .option("--limit <n>", "maximum number of rows; 0 = no limit", wholeNumber(0), 50)
    .addHelpText(
      "after",
      "\nStates: hot = runs in a triggerer · cold = cannot fire yet · timed = fires at a set time · unowned = waits for a triggerer",
    )
    .action(async ({ dag, kind, limit, queue, state, triggerer }) => {
      const what = "cannot list the triggers";
      const listed = await session.client.list<Trigger>({
        path: "/triggers",
        key: "triggers",
        what,
        query: { state, kind, queue, dag_id: dag, triggerer_id: triggerer },
        limit,
      });
      await requireNamed(session.client, what, listed, { dag });
      await session.printList(listed, columns(session), "No triggers match.");
    });

  triggers
    .command("show")
    .description("show a trigger and its first waiting tasks")
    .addHelpText("after", examples("tradewind triggers show 12"))
    .argument("<id>", "its number", wholeNumber(1))
    .action(async (id) => {
      const trigger = await session.client.get<Trigger>(path`/triggers/${id}`, {
        what: `cannot show the trigger ${id}`,
      });
      await session.printObject(trigger, [
        ["trigger", String(trigger.id)],
        ["kind", trigger.kind],
        ["arguments", trigger.args_text],
        ["state", trigger.state],
        ["queue", trigger.queue],
        ["bundle", trigger.bundle_hash ?? "built in"],
        ["replicas", String(trigger.replicas)],
        ["schedule of", trigger.dag_id],
        ["created", moment(trigger.created_at)],
        ["earliest", moment(trigger.wake_at)],
        ["triggerer", trigger.triggerer && runnerName(trigger.triggerer)],
        ["standby", trigger.standby && runnerName(trigger.standby)],
        ["last polled", trigger.last_polled_at && moment(trigger.last_polled_at)],
        ["waiting", `${trigger.waiting_tasks} ${trigger.waiting_tasks === 1 ? "task" : "tasks"}`],
      ]);
      const { terminal } = session;
      const waits = trigger.waits ?? [];
      if (session.format !== "table" || waits.length === 0) return;
      terminal.data("");
      for (const line of renderTable(waits, waitColumns(waits, "one trigger"), terminal.width))
        terminal.data(line);
      if (waits.length < trigger.waiting_tasks)
        session.note(
          `${waits.length} of ${trigger.waiting_tasks} shown: \`tradewind waiting --trigger ${id}\``,
        );
    });

  return triggers;
}

function columns({ terminal }: Session): readonly Column<Trigger>[] {
  return [
    { title: "ID", value: ({ id }) => String(id), align: "right" },
    { title: "KIND", value: ({ kind }) => kind },
    {
      title: "STATE",
      value: ({ state }) => state,
      paint: ({ state }, cell) => (state === "unowned" ? terminal.paint("yellow", cell) : cell),
    },
    {
      title: "WAITING",
      value: ({ dag_id, waiting_tasks }) => (dag_id === null ? String(waiting_tasks) : `DAG ${dag_id}`),
      align: "right",
    },
    { title: "TRIGGERER", value: ({ triggerer }) => (triggerer ? runnerName(triggerer) : "-") },
    { title: "POLLED", value: ({ last_polled_at }) => relativeTime(last_polled_at) },
    { title: "QUEUE", value: ({ queue }) => queue, optional: true },
    { title: "ARGUMENTS", value: ({ args_text }) => args_text, flexible: true, optional: true },
  ];
}
