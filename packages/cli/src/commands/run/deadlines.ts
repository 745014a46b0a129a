import { Command, Option } from "@commander-js/extra-typings";
import { findRunFilter, RUN_ARGUMENT } from "../../client/find-run.ts";
import { requireNamed } from "../../client/named-filter.ts";
import type { Deadline } from "../../client/resources.ts";
import { examples } from "../../examples.ts";
import { wholeNumber } from "../../input/values.ts";
import type { Column } from "../../output/table.ts";
import { relativeTime } from "../../output/when.ts";
import type { Session } from "../../session.ts";

const STATES = ["pending", "met", "missed"] as const;

export function command(session: Session) {
  const deadlines = new Command("deadlines")
    .description("list the deadlines of runs and tasks")
    .addHelpText("after", examples("tradewind deadlines list --missed"));

  deadlines
    .command("list")
    .description("list deadlines, latest first")
    .addHelpText(
      "after",
      examples("tradewind deadlines list --missed", "tradewind deadlines list --dag etl --state pending"),
    )
    .option("--missed", "only missed deadlines")
    .addOption(
      new Option("--state <state...>", "only deadlines in these states").choices(STATES).conflicts("missed"),
    )
    .option("--dag <dag>", "only deadlines of this DAG")
    .option("--run <run>", `only deadlines of this run: ${RUN_ARGUMENT}`)
    .option("--task <task>", "only deadlines of this task")
    .option("--limit <n>", "maximum number of rows; 0 = no limit", wholeNumber(0), 50)
    .action(async ({ dag, limit, missed, run: given, state, task }) => {
      const what = "cannot list the deadlines";
      const run = await findRunFilter(session.client, { dag, run: given });
      const listed = await session.client.list<Deadline>({
        path: "/deadlines",
        key: "deadlines",
        what,
        query: { state: missed ? ["missed"] : state, dag_id: dag, dag_run_id: run, task_id: task },
        limit,
      });
      await requireNamed(session.client, what, listed, { dag, run, task });
      await session.printList(listed, deadlineColumns(session), "No deadlines match.");
    });

  return deadlines;
}

function deadlineColumns({ terminal }: Session): readonly Column<Deadline>[] {
  return [
    { title: "DAG", value: ({ dag_id }) => dag_id },
    { title: "RUN", value: ({ dag_run_id }) => dag_run_id },
    { title: "TASK", value: ({ task_id }) => task_id ?? "-" },
    { title: "AFTER", value: ({ after }) => after },
    { title: "DUE", value: ({ due_at }) => relativeTime(due_at) },
    {
      title: "STATE",
      value: ({ state }) => state,
      paint: ({ state }, cell) => (state === "missed" ? terminal.paint("red", cell) : cell),
    },
    { title: "RUN IS", value: ({ dag_run_state }) => dag_run_state, optional: true },
    {
      title: "SENT",
      value: ({ dead_deliveries: dead, deliveries: all, done_deliveries: done }) =>
        dead > 0 ? `${dead} of ${all} failed` : done < all ? `${done} of ${all}` : String(all),
      optional: true,
    },
  ];
}
