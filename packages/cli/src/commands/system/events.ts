import { Command } from "@commander-js/extra-typings";
import { instanceText } from "@tradewind/sdk/wording";
import { path } from "../../client/client.ts";
import { findRunFilter, RUN_ARGUMENT } from "../../client/find-run.ts";
import { requireNamed } from "../../client/named-filter.ts";
import { examples } from "../../examples.ts";
import { parseBound, sinceInstant, untilInstant } from "../../input/dates.ts";
import { wholeNumber } from "../../input/values.ts";
import type { Column } from "../../output/table.ts";
import { moment } from "../../output/when.ts";
import type { Session } from "../../session.ts";

interface AuditEvent {
  readonly event_log_id: number;
  readonly when: string;
  readonly event: string;
  readonly owner: string | null;
  readonly dag_id: string | null;
  readonly run_id: string | null;
  readonly task_id: string | null;
  readonly map_index: number | null;
  /** A JSON object as text. */
  readonly extra: string | null;
}

export function command(session: Session) {
  const events = new Command("events")
    .description("list the audit log: who changed what, and when")
    .addHelpText("after", examples("tradewind events list --dag etl", "tradewind events show 12"));

  events
    .command("list")
    .description("list events, newest first")
    .addHelpText(
      "after",
      examples(
        "tradewind events list --dag etl --since 2d",
        "# who paused or unpaused DAGs?",
        "tradewind events list --event pause_dag unpause_dag",
        "tradewind events list --user ci --limit 0 -o json",
      ),
    )
    .option("--dag <dag>", "only events of this DAG")
    .option("--run <run>", `only events of this run: ${RUN_ARGUMENT}`)
    .option("--task <task>", "only events of this task")
    .option("--user <name>", "only events of this user (a token name)")
    .option("--event <event...>", "only these events, e.g. trigger_dag_run, clear_dag_run, patch_variable")
    .option(
      "--since <date>",
      "only events since this time: 2026-01-31, 2026-01-31T08:00 (UTC), 3h, 2d",
      parseBound,
    )
    .option("--until <date>", "only events until this time (a day is included as a whole)", parseBound)
    .option("--limit <n>", "maximum number of rows; 0 = no limit", wholeNumber(0), 50)
    .action(async ({ dag, event, limit, run: given, since, task, until, user }) => {
      const what = "cannot list the events";
      const run = await findRunFilter(session.client, { dag, run: given });
      const listed = await session.client.list<AuditEvent>({
        path: "/eventLogs",
        key: "event_logs",
        what,
        query: {
          dag_id: dag,
          run_id: run,
          task_id: task,
          owner: user,
          included_events: event,
          // Both filters exclude the instant itself.
          after: since && new Date(sinceInstant(since, "UTC").getTime() - 1).toISOString(),
          before: until && untilInstant(until, "UTC").toISOString(),
          order_by: "-event_log_id",
        },
        limit,
      });
      await requireNamed(session.client, what, listed, { dag, run, task });
      await session.printList(listed, COLUMNS, "No events match.");
    });

  events
    .command("show")
    .description("show an event with its details")
    .addHelpText("after", examples("tradewind events show 12"))
    .argument("<id>", "number of the event, from `tradewind events list`", wholeNumber(1))
    .action(async (id) => {
      const event = await session.client.get<AuditEvent>(path`/eventLogs/${id}`, {
        what: `cannot show the event ${id}`,
      });
      await session.printObject(event, [
        ["id", String(event.event_log_id)],
        ["when", moment(event.when)],
        ["user", event.owner],
        ["event", event.event],
        ["dag", event.dag_id],
        ["run", event.run_id],
        ["task", taskOf(event)],
        ["details", event.extra && JSON.stringify(JSON.parse(event.extra), null, 2)],
      ]);
    });

  return events;
}

function taskOf({ map_index, task_id }: AuditEvent): string {
  if (task_id === null) return "";
  return instanceText(task_id, map_index ?? -1, null);
}

const COLUMNS: readonly Column<AuditEvent>[] = [
  { title: "ID", value: ({ event_log_id: id }) => String(id), align: "right" },
  { title: "WHEN", value: ({ when }) => moment(when).replace(/\.\d+/, "") },
  { title: "USER", value: ({ owner }) => owner ?? "-" },
  { title: "EVENT", value: ({ event }) => event },
  { title: "DAG", value: ({ dag_id }) => dag_id ?? "" },
  { title: "RUN", value: ({ run_id }) => run_id ?? "", optional: true },
  { title: "TASK", value: taskOf, optional: true },
  { title: "DETAILS", value: ({ extra }) => extra ?? "", flexible: true, optional: true },
];
