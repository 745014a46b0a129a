import { type Command, Option } from "@commander-js/extra-typings";
import { path } from "../../client/client.ts";
import { findRunId, RUN_ARGUMENT } from "../../client/find-run.ts";
import type { Task, TaskInstance } from "../../client/resources.ts";
import { usageError } from "../../errors.ts";
import { examples } from "../../examples.ts";
import { wholeNumber } from "../../input/values.ts";
import { instanceColumns, reasonText } from "../../output/instance-name.ts";
import { ruleName } from "../../output/rule-name.ts";
import { paintState, stateName } from "../../output/state.ts";
import type { Column } from "../../output/table.ts";
import { relativeTime, span } from "../../output/when.ts";
import type { Session } from "../../session.ts";
import { explainUnstartedRun } from "../../why/empty-log.ts";
import { readTasks } from "../dag/dag-show.ts";

const STATES = [
  "pending",
  "scheduled",
  "queued",
  "running",
  "restarting",
  "up_for_retry",
  "up_for_reschedule",
  "deferred",
  "success",
  "failed",
  "skipped",
  "upstream_failed",
  "removed",
] as const;

/** `tasks list`: the tasks of a DAG, or of a run with their states; upstream before downstream. */
export function addListCommand(tasks: Command, session: Session): void {
  tasks
    .command("list")
    .description("list the tasks of a DAG, or of a run with their states")
    .argument("<dag>")
    .argument("[run]", `${RUN_ARGUMENT} (default: the tasks of the DAG, without states)`)
    .addOption(new Option("--state <state...>", "only tasks in these states (needs a run)").choices(STATES))
    .option("--limit <n>", "maximum number of rows; 0 = no limit", wholeNumber(0), 200)
    .addHelpText(
      "after",
      examples(
        "tradewind tasks list etl",
        "tradewind tasks list etl @latest",
        "# tasks that failed, or did not run because of a failure",
        "tradewind tasks list etl @latest --state failed upstream_failed",
      ),
    )
    .action(async (dag, run, { limit, state }) => {
      if (run === undefined) {
        if (state !== undefined) throw usageError("--state needs a run.", `add a run, e.g. ${dag} @latest`);
        return listTasks(session, dag, limit);
      }
      const runId = await findRunId(session.client, dag, run);
      const listed = await session.client.list<TaskInstance>({
        path: path`/dags/${dag}/dagRuns/${runId}/taskInstances`,
        key: "task_instances",
        what: `cannot list the tasks of the run ${runId} of ${dag}`,
        query: { state, order_by: "topological_index" },
        limit,
      });
      const isTable = session.format === "table";
      if (isTable && listed.items.length === 0 && (await explainUnstartedRun(session, dag, runId))) return;
      await session.printList(listed, instanceTable(session, listed.items), "No tasks match.");
    });
}

async function listTasks(session: Session, dagId: string, limit: number): Promise<void> {
  const all = await readTasks(session, dagId, `cannot list the tasks of ${dagId}`);
  const items = limit === 0 ? [...all] : all.slice(0, limit);
  await session.printList({ items, total: all.length }, TASK_COLUMNS, "The DAG has no tasks.");
}

const TASK_COLUMNS: readonly Column<Task>[] = [
  { title: "TASK", value: (task) => (task.is_mapped ? `${task.task_id}[]` : task.task_id) },
  { title: "OPERATOR", value: (task) => task.operator_name ?? "" },
  { title: "RETRIES", value: (task) => String(task.retries ?? 0), align: "right" },
  { title: "AFTER", value: (task) => task.upstream_task_ids.join(", ") || "-", flexible: true },
  { title: "RULE", value: ruleName, optional: true },
  { title: "POOL", value: (task) => task.pool ?? "", optional: true },
];

function instanceTable(session: Session, listed: readonly TaskInstance[]): readonly Column<TaskInstance>[] {
  return [
    ...instanceColumns(listed),
    {
      title: "STATE",
      value: ({ state }) => stateName(state),
      paint: ({ state }, cell) => paintState(session.terminal, state, cell),
    },
    { title: "TRY", value: (instance) => String(instance.try_number), align: "right" },
    { title: "STARTED", value: (instance) => relativeTime(instance.start_date) },
    { title: "TOOK", value: (instance) => span(instance.duration), align: "right" },
    ...(listed.some((instance) => reasonText(instance) !== "") ? [REASON] : []),
    {
      title: "OPERATOR",
      value: (instance) => instance.operator_name ?? instance.operator ?? "",
      optional: true,
    },
    ...(listed.some(({ pool }) => pool !== "default_pool") ? [POOL] : []),
    ...(listed.some(({ executor_job: job }) => job?.name) ? [HOST] : []),
  ];
}

const POOL: Column<TaskInstance> = { title: "POOL", value: ({ pool }) => pool, optional: true };
/** Only if a worker runs or ran one of them: otherwise all run where the scheduler does. */
const HOST: Column<TaskInstance> = {
  title: "WORKER",
  value: ({ executor_job: job, hostname }) => job?.name ?? hostname ?? "-",
  optional: true,
};
const REASON: Column<TaskInstance> = { title: "REASON", value: reasonText, flexible: true };
