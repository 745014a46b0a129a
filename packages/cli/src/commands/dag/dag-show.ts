import type { Command } from "@commander-js/extra-typings";
import { path } from "../../client/client.ts";
import type { DagDetails, QueuedAsset, Task } from "../../client/resources.ts";
import { examples } from "../../examples.ts";
import { dagStatus, lastRunText } from "../../output/dag-status.ts";
import { printTaskTable } from "../../output/graph/task-table.ts";
import { paramLines } from "../../output/params.ts";
import { assetLines, catchupText, nextRunLines, scheduleWords } from "../../output/schedule-view.ts";
import { relativeTime, span } from "../../output/when.ts";
import type { Fields, Session } from "../../session.ts";

/** `dags show`: the details of one DAG, and its tasks as a graph. */
export function addShowCommand(dags: Command, session: Session): void {
  dags
    .command("show")
    .description("show a DAG: schedule, next dates, options and task graph")
    .argument("<dag>")
    .addHelpText(
      "after",
      examples(
        "tradewind dags show etl",
        "# the next dates in your time zone",
        "tradewind dags show etl --tz local",
        "# the schedule and the tasks for a script",
        "tradewind dags show etl --json | jq '.next_runs, .tasks[].task_id'",
      ),
    )
    .action(async (dagId) => {
      const what = `cannot show the DAG ${dagId}`;
      const [dag, tasks] = await Promise.all([
        session.client.get<DagDetails>(path`/dags/${dagId}/details`, { what }),
        readTasks(session, dagId, what),
      ]);
      const queued = dag.asset_expression === null ? null : await readQueued(session, dagId, what);
      const shown = { ...dag, ...(queued && { queued_events: queued }), tasks };
      await session.printObject(shown, dagFields(dag, tasks, queued ?? []));
      if (session.format !== "table" || tasks.length === 0) return;
      session.terminal.data("");
      printTaskTable(session, dagId, tasks);
    });
}

/** In topological order. */
export async function readTasks(session: Session, dagId: string, what: string): Promise<readonly Task[]> {
  const query = { order_by: "topological_index" };
  const { tasks } = await session.client.get<{ tasks: Task[] }>(path`/dags/${dagId}/tasks`, { what, query });
  return tasks;
}

async function readQueued(session: Session, dagId: string, what: string): Promise<QueuedAsset[]> {
  const at = path`/dags/${dagId}/assets/queuedEvents`;
  return (await session.client.get<{ queued_events: QueuedAsset[] }>(at, { what })).queued_events;
}

function dagFields(dag: DagDetails, tasks: readonly Task[], queued: readonly QueuedAsset[]): Fields {
  const version = dag.latest_dag_version;
  const status = dagStatus(dag);
  const last = dag.last_run;
  return [
    ["dag", dag.dag_id],
    ["version", version && `${version.version_number} (${relativeTime(version.created_at)})`],
    ["description", dag.description],
    ["status", dag.has_import_errors ? `${status}, and the current file fails to load` : status],
    ["paused because", dag.pause_reason],
    ["schedule", scheduleWords(dag)],
    ["dates", catchupText(dag)],
    ["jitter", dag.jitter && `up to ${dag.jitter.slice(2).toLowerCase()}`],
    ["schedule error", scheduleProblem(dag)],
    ["waits for", assetLines(dag, queued)],
    ["next runs", nextRunLines(dag)],
    ["last run", last && `${lastRunText(dag)}: ${last.dag_run_id}`],
    ["file", dag.relative_fileloc ?? dag.fileloc],
    ["owner", dag.owners.join(", ")],
    ["tags", dag.tags.map((tag) => tag.name).join(", ")],
    [
      "limits",
      `${dag.max_active_runs ?? "any number of"} runs, ${dag.max_active_tasks} tasks of a run at once`,
    ],
    [
      "depends on past",
      tasks
        .filter((task) => task.depends_on_past)
        .map((task) => task.task_id)
        .join(", "),
    ],
    ["pauses", dag.max_consecutive_failed_dag_runs > 0 ? failureLimit(dag) : null],
    ["run retries", dag.run_retries && runRetries(dag.run_retries)],
    [
      "group retries",
      dag.group_retries
        .map(({ delay, group_id, retries }) => `${group_id}: ${retries}, ${span(delay)} apart`)
        .join("\n"),
    ],
    ["params", paramLines(dag.params_schema).join("\n")],
    ["loaded", relativeTime(dag.last_parsed_time)],
  ];
}

function failureLimit({ max_consecutive_failed_dag_runs: most }: DagDetails): string {
  return `after ${most} failed scheduled run${most === 1 ? "" : "s in a row"}`;
}

function runRetries({ delay, from, retries }: NonNullable<DagDetails["run_retries"]>): string {
  return `${retries}, ${span(delay)} apart, from ${from === "start" ? "the start" : "what failed"}`;
}

/** The error of a custom timetable, and the time of the next attempt. */
function scheduleProblem({ schedule_error: error }: DagDetails): string | null {
  if (!error) return null;
  const again = error.next_try === null ? "" : `; next try ${relativeTime(error.next_try)}`;
  return `${error.message} [${error.code}] (${error.failures} in a row${again})`;
}
