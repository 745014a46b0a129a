import { Command, Option } from "@commander-js/extra-typings";
import { path } from "../client/client.ts";
import { requireNamed } from "../client/named-filter.ts";
import { usageError } from "../errors.ts";
import { wholeNumber } from "../input/values.ts";
import type { Column } from "../output/table.ts";
import { relativeTime } from "../output/when.ts";
import type { Session } from "../session.ts";

interface Deadline {
  readonly id: number;
  readonly dag_id: string;
  readonly dag_run_id: string;
  readonly task_id: string | null;
  readonly after: string;
  readonly due_at: string;
  readonly state: "pending" | "met" | "missed";
  readonly dag_run_state: string;
  readonly deliveries: number;
  readonly done_deliveries: number;
  readonly dead_deliveries: number;
}

interface Delivery {
  readonly id: number;
  readonly dag_id: string;
  readonly dag_run_id: string;
  readonly task_id: string | null;
  readonly kind: string;
  readonly receiver: string | null;
  readonly missed_at: string;
  readonly state: string;
  readonly attempts: number;
  readonly error: string | null;
}

const STATES = ["pending", "met", "missed"] as const;

export function command(session: Session) {
  const deadlines = new Command("deadlines").description(
    "by when runs and tasks have to have succeeded, and who was told when they had not",
  );

  deadlines
    .command("list")
    .description("list deadlines, the latest first")
    .option("--missed", "only those that were missed")
    .addOption(new Option("--state <state...>", "only in these states").choices(STATES).conflicts("missed"))
    .option("--dag <dag>", "only of this DAG")
    .option("--run <run>", "only of this run")
    .option("--task <task>", "only of this task")
    .option("--limit <n>", "how many at most; 0 = all", wholeNumber(0), 50)
    .action(async ({ dag, limit, missed, run, state, task }) => {
      const what = "cannot list the deadlines";
      const listed = await session.client.list<Deadline>({
        path: "/deadlines",
        key: "deadlines",
        what,
        query: { state: missed ? ["missed"] : state, dag_id: dag, dag_run_id: run, task_id: task },
        limit,
      });
      await requireNamed(session.client, what, listed, { dag, run, task });
      await session.printList(listed, deadlineColumns(session), "There are no such deadlines.");
    });

  deadlines
    .command("dead")
    .description("list what could not be delivered and was given up, the latest first")
    .option("--dag <dag>", "only of this DAG")
    .option("--limit <n>", "how many at most; 0 = all", wholeNumber(0), 50)
    .action(async ({ dag, limit }) => {
      await session.printList(
        await readDead(session, dag, limit),
        deliveryColumns(),
        "Nothing was given up: all that was missed has been told, or is being told.",
      );
    });

  deadlines
    .command("retry")
    .description("begin again with deliveries that were given up")
    .argument("[ids...]", "their numbers, from `tradewind deadlines dead`")
    .option("--all", "all that were given up")
    .option("--dag <dag>", "with --all: only those of this DAG")
    .action(async (ids, { all, dag }) => {
      if (ids.length > 0 === (all === true))
        throw usageError(
          "say which deliveries: their numbers, or --all",
          "`tradewind deadlines dead` lists them",
        );
      const chosen = all
        ? (await readDead(session, dag, 0)).items.map(({ id }) => id)
        : ids.map((id) => wholeNumber(1)(id));
      const begun: Delivery[] = [];
      for (const id of chosen) {
        const what = `cannot retry the delivery ${id}`;
        begun.push(await session.client.post<Delivery>(path`/deadlines/deliveries/${id}/retry`, { what }));
        if (chosen.length > 20 && begun.length % 20 === 0)
          session.note(`${begun.length} of ${chosen.length} begin again.`);
      }
      const count = `${begun.length} ${begun.length === 1 ? "delivery begins" : "deliveries begin"}`;
      await session.printDone(begun, begun.length === 0 ? "Nothing was given up." : `${count} again.`);
    });

  return deadlines;
}

async function readDead({ client }: Session, dag: string | undefined, limit: number) {
  const what = "cannot list the deliveries";
  const listed = await client.list<Delivery>({
    path: "/deadlines/deliveries",
    key: "deliveries",
    what,
    query: { state: ["dead"], dag_id: dag },
    limit,
  });
  await requireNamed(client, what, listed, { dag });
  return listed;
}

function deadlineColumns({ terminal }: Session): readonly Column<Deadline>[] {
  return [
    { title: "DAG", value: ({ dag_id }) => dag_id },
    { title: "RUN", value: ({ dag_run_id }) => dag_run_id, flexible: true },
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
      title: "TOLD",
      value: ({ dead_deliveries: dead, deliveries: all, done_deliveries: done }) =>
        dead > 0 ? `${dead} of ${all} given up` : done < all ? `${done} of ${all}` : String(all),
      optional: true,
    },
  ];
}

function deliveryColumns(): readonly Column<Delivery>[] {
  return [
    { title: "ID", value: ({ id }) => String(id), align: "right" },
    { title: "DAG", value: ({ dag_id }) => dag_id },
    { title: "RUN", value: ({ dag_run_id }) => dag_run_id, flexible: true },
    { title: "TASK", value: ({ task_id }) => task_id ?? "-" },
    { title: "TO", value: ({ kind, receiver }) => (receiver === null ? kind : `${kind} ${receiver}`) },
    { title: "MISSED", value: ({ missed_at }) => relativeTime(missed_at) },
    { title: "TRIES", value: ({ attempts }) => String(attempts), align: "right" },
    { title: "ERROR", value: ({ error }) => error ?? "-", flexible: true, optional: true },
  ];
}
