import { Command, Option } from "@commander-js/extra-typings";
import { instanceText } from "@tradewind/sdk/wording";
import { path } from "../../client/client.ts";
import { findRunFilter, RUN_ARGUMENT } from "../../client/find-run.ts";
import { requireNamed } from "../../client/named-filter.ts";
import { usageError } from "../../errors.ts";
import { examples } from "../../examples.ts";
import { wholeNumber } from "../../input/values.ts";
import type { Column } from "../../output/table.ts";
import { moment, relativeTime } from "../../output/when.ts";
import type { Fields, Session } from "../../session.ts";

interface Delivery {
  readonly id: number;
  readonly event: string;
  readonly dag_id: string;
  readonly dag_run_id: string;
  readonly task_id: string | null;
  readonly group_id: string | null;
  readonly map_index: number;
  readonly kind: string;
  readonly receiver: string | null;
  readonly occurred_at: string;
  readonly state: string;
  readonly attempts: number;
  readonly next_try_at: string | null;
  readonly ended_at: string | null;
  readonly error: string | null;
}

const deliveryId = wholeNumber(1);
const STATES = ["pending", "handed", "done", "dead"] as const;
const EVENTS = ["success", "failure", "retry", "deadline"] as const;

export function command(session: Session) {
  const deliveries = new Command("deliveries")
    .description("list and retry deliveries: webhooks, mails and signals about events of runs and tasks")
    .addHelpText("after", examples("tradewind deliveries list --dead"));

  deliveries
    .command("list")
    .description("list deliveries, latest first")
    .addHelpText(
      "after",
      examples("tradewind deliveries list --dead", "tradewind deliveries list --dag etl --event failure"),
    )
    .option("--dead", "only failed deliveries that are not retried")
    .addOption(
      new Option("--state <state...>", "only deliveries in these states").choices(STATES).conflicts("dead"),
    )
    .addOption(new Option("--event <event...>", "only deliveries for these events").choices(EVENTS))
    .option("--dag <dag>", "only deliveries of this DAG")
    .option("--run <run>", `only deliveries of this run: ${RUN_ARGUMENT}`)
    .option("--task <task>", "only deliveries of this task")
    .option("--limit <n>", "maximum number of rows; 0 = no limit", wholeNumber(0), 50)
    .action(async ({ dag, dead, event, limit, run: given, state, task }) => {
      const run = await findRunFilter(session.client, { dag, run: given });
      const filter = { states: dead ? ["dead"] : state, events: event, dag, run, task };
      await session.printList(await read(session, filter, limit), columns(session), "No deliveries match.");
    });

  deliveries
    .command("show")
    .description("show a delivery with its full error")
    .addHelpText("after", examples("tradewind deliveries show 12"))
    .argument("<id>", "number of the delivery, from `tradewind deliveries list`", deliveryId)
    .action(async (id) => {
      const what = `cannot show the delivery ${id}`;
      const delivery = await session.client.get<Delivery>(path`/deliveries/${id}`, { what });
      await session.printObject(delivery, fieldsOf(delivery));
    });

  deliveries
    .command("retry")
    .description("retry dead deliveries")
    .addHelpText(
      "after",
      examples("tradewind deliveries retry 12 13", "tradewind deliveries retry --all --dag etl"),
    )
    .argument(
      "[ids...]",
      "numbers of deliveries, from `tradewind deliveries list --dead`",
      (text, others: readonly number[]) => [...others, deliveryId(text)],
      [],
    )
    .option("--all", "retry all dead deliveries")
    .option("--dag <dag>", "with --all: only deliveries of this DAG")
    .action(async (ids, { all, dag }) => {
      if (ids.length > 0 === (all === true))
        throw usageError(
          "give either numbers of deliveries or --all.",
          "`tradewind deliveries list --dead` lists them",
        );
      const chosen = all
        ? (await read(session, { states: ["dead"], dag }, 0)).items.map(({ id }) => id)
        : ids;
      const begun: Delivery[] = [];
      for (const id of chosen) {
        const what = `cannot retry the delivery ${id}`;
        begun.push(await session.client.post<Delivery>(path`/deliveries/${id}/retry`, { what }));
        if (chosen.length > 20 && begun.length % 20 === 0)
          session.note(`${begun.length} of ${chosen.length} queued for retry.`);
      }
      const count = `${begun.length} ${begun.length === 1 ? "delivery" : "deliveries"}`;
      await session.printDone(
        begun,
        begun.length === 0 ? "No dead deliveries." : `${count} queued for retry.`,
      );
    });

  return deliveries;
}

interface Filter {
  readonly states?: string[] | undefined;
  readonly events?: string[] | undefined;
  readonly dag?: string | undefined;
  readonly run?: string | undefined;
  readonly task?: string | undefined;
}

async function read({ client }: Session, filter: Filter, limit: number) {
  const { dag, events, run, states, task } = filter;
  const what = "cannot list the deliveries";
  const query = { state: states, event: events, dag_id: dag, dag_run_id: run, task_id: task };
  const listed = await client.list<Delivery>({ path: "/deliveries", key: "deliveries", what, query, limit });
  await requireNamed(client, what, listed, { dag, run, task });
  return listed;
}

function columns({ terminal }: Session): readonly Column<Delivery>[] {
  return [
    { title: "ID", value: ({ id }) => String(id), align: "right" },
    { title: "EVENT", value: ({ event }) => event },
    { title: "DAG", value: ({ dag_id }) => dag_id },
    { title: "RUN", value: ({ dag_run_id }) => dag_run_id, optional: true },
    { title: "TASK", value: placeOf },
    { title: "TO", value: receiverOf, flexible: true },
    { title: "WHEN", value: ({ occurred_at }) => relativeTime(occurred_at), optional: true },
    {
      title: "STATE",
      value: ({ state }) => state,
      paint: ({ state }, cell) => (state === "dead" ? terminal.paint("red", cell) : cell),
    },
    { title: "TRIES", value: ({ attempts }) => String(attempts), align: "right", optional: true },
    { title: "ERROR", value: ({ error }) => error ?? "-", flexible: true },
  ];
}

function fieldsOf(delivery: Delivery): Fields {
  return [
    ["id", String(delivery.id)],
    ["state", delivery.state],
    ["event", delivery.event],
    ["dag", delivery.dag_id],
    ["run", delivery.dag_run_id],
    ["task", placeOf(delivery)],
    ["to", receiverOf(delivery)],
    ["occurred", moment(delivery.occurred_at)],
    ["tries", String(delivery.attempts)],
    ["next try", delivery.next_try_at && moment(delivery.next_try_at)],
    ["ended", delivery.ended_at && moment(delivery.ended_at)],
    ["error", delivery.error],
  ];
}

function receiverOf({ kind, receiver }: Delivery): string {
  return receiver === null ? kind : `${kind} ${receiver}`;
}

function placeOf({ group_id, map_index, task_id }: Delivery): string {
  const name = task_id ?? group_id;
  if (name === null) return "-";
  return instanceText(name, map_index, null);
}
