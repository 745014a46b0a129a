import { Argument, Command } from "@commander-js/extra-typings";
import { path } from "../../client/client.ts";
import { findRunId, RUN_ARGUMENT } from "../../client/find-run.ts";
import { findMapIndex, MAP_INDEX_FORMS } from "../../client/map-index.ts";
import type { TaskInstance } from "../../client/resources.ts";
import { getInstance, type InstanceName, instancePath } from "../../client/task-log.ts";
import { describeMove, findMove } from "../../client/version-move.ts";
import { examples } from "../../examples.ts";
import { instanceName } from "../../output/instance-name.ts";
import { printOutput } from "../../output/task-output.ts";
import type { Session } from "../../session.ts";
import { explainTask } from "../../why/explain-task.ts";
import { submitManualCommand } from "./manual-commands.ts";
import { addListCommand } from "./task-list.ts";
import { addLogsCommand } from "./task-logs.ts";
import { addTestCommand } from "./task-test.ts";

const MAP_INDEX = `instance of a mapped task: ${MAP_INDEX_FORMS}`;

const ORDERS = [
  ["start", "start a task of a run now; if it is running, start it once more afterwards"],
  ["restart", "stop a task if it is running, then start it"],
  ["stop", "stop a running task and discard its pending starts"],
] as const;

export function command(session: Session) {
  const tasks = new Command("tasks")
    .description("list, test, explain, rerun and mark tasks, read their logs and outputs")
    .addHelpText(
      "after",
      examples("tradewind tasks list etl @latest", "tradewind tasks why etl @latest load"),
    );
  const name = async (
    dagId: string,
    run: string,
    [taskId, which]: [string, string | undefined],
  ): Promise<InstanceName> => {
    const task = { dagId, runId: await findRunId(session.client, dagId, run), taskId };
    return { ...task, mapIndex: await findMapIndex(session.client, task, which) };
  };

  addListCommand(tasks, session);
  addTestCommand(tasks, session);

  addLogsCommand(tasks, session);

  const instanceCommand = (name: string) =>
    tasks
      .command(name)
      .argument("<dag>")
      .argument("<run>", RUN_ARGUMENT)
      .argument("<task>")
      .option("--map-index <which>", MAP_INDEX);

  instanceCommand("output")
    .description("print the output of a task as JSON")
    .addHelpText(
      "after",
      examples(
        "tradewind tasks output etl @latest report",
        "# one item of a mapped task",
        "tradewind tasks output etl @latest load --map-index 3 | jq .rows",
      ),
    )
    .action(async (dag, run, taskId, { mapIndex }) => {
      await printOutput(session, await name(dag, run, [taskId, mapIndex]));
    });

  instanceCommand("why")
    .description("explain why a task is or is not running")
    .addHelpText(
      "after",
      examples(
        "tradewind tasks why etl @latest load",
        "tradewind tasks why etl @latest load --map-index 3",
        "# the reasons for a script",
        "tradewind tasks why etl @latest load --json | jq '.reasons[].code'",
      ),
    )
    .action(async (dag, run, taskId, { mapIndex }) => {
      await explainTask(session, await name(dag, run, [taskId, mapIndex]));
    });

  for (const [action, description] of ORDERS) {
    tasks
      .command(action)
      .description(description)
      .argument("<dag>")
      .argument("<run>", RUN_ARGUMENT)
      .argument("<task>")
      .addHelpText("after", examples(`tradewind tasks ${action} online_model @latest train`))
      .action(async (dag, run, taskId) => {
        const runId = await findRunId(session.client, dag, run);
        await submitManualCommand(session, { dagId: dag, runId, taskId, action });
      });
  }

  tasks
    .command("clear")
    .description("rerun tasks")
    .argument("<dag>")
    .argument("<run>", RUN_ARGUMENT)
    .argument("<task...>")
    .option("--downstream", "include downstream tasks")
    .option("--upstream", "include upstream tasks")
    .option("--only-failed", "only tasks that failed or were cancelled")
    .option("--map-index <which>", `only this instance of a mapped task: ${MAP_INDEX_FORMS}`)
    .option("--latest-version", "use the current version of the DAG (default: the version of the run)")
    .option("--dry-run", "only show the tasks")
    .addHelpText(
      "after",
      examples(
        "tradewind tasks clear etl @latest load --downstream",
        "# preview",
        "tradewind tasks clear etl @latest extract --downstream --dry-run",
        "# with the current code",
        "tradewind tasks clear etl @latest load --latest-version --yes",
      ),
    )
    .action(async (dag, given, taskIds, options) => {
      const runId = await findRunId(session.client, dag, given);
      const { client } = session;
      const chosen: [string, number][] = [];
      for (const taskId of taskIds)
        chosen.push([taskId, await findMapIndex(client, { dagId: dag, runId, taskId }, options.mapIndex)]);
      const clear = (dryRun: boolean) =>
        client.post<{ task_instances: TaskInstance[] }>(path`/dags/${dag}/clearTaskInstances`, {
          what: `cannot clear ${taskIds.join(", ")}`,
          body: {
            dry_run: dryRun,
            dag_run_id: runId,
            task_ids: options.mapIndex === undefined ? taskIds : chosen,
            only_failed: options.onlyFailed === true,
            include_downstream: options.downstream === true,
            include_upstream: options.upstream === true,
            run_on_latest_version: options.latestVersion === true,
          },
        });
      const { task_instances: affected } = await clear(true);
      if (affected.length === 0) return session.printDone(affected, "Nothing to clear.");
      const move = options.latestVersion ? await findMove(client, dag, runId) : null;
      const { again, others, where } = describeMove(affected, move);
      const list = `${where}: ${again.map(instanceName).join(", ") || "none"}${others}`;
      if (options.dryRun) return session.printDone(affected, `Would rerun${list}.`);
      await session.confirm(`Rerun${list}?`);
      await clear(false);
      await session.printDone(affected, `Rerunning${list}.`);
    });

  tasks
    .command("mark")
    .description("set the state of a task manually")
    .argument("<dag>")
    .argument("<run>", RUN_ARGUMENT)
    .argument("<task>")
    .addArgument(new Argument("<state>").choices(["success", "failed", "skipped"]))
    .option("--map-index <which>", MAP_INDEX)
    .option("--downstream", "include downstream tasks")
    .option("--upstream", "include upstream tasks")
    .addHelpText(
      "after",
      examples(
        "tradewind tasks mark etl @latest load success",
        "tradewind tasks mark etl @latest extract skipped --downstream --yes",
      ),
    )
    .action(async (dag, run, taskId, state, options) => {
      const instance = await name(dag, run, [taskId, options.mapIndex]);
      const shown =
        instance.mapIndex === -1 ? taskId : instanceName(await getInstance(session.client, instance));
      await session.confirm(`Mark ${shown} of ${instance.runId} as ${state}?`);
      const marked = await session.client.patch<unknown>(instancePath(instance), {
        what: `cannot mark ${taskId}`,
        body: {
          new_state: state,
          include_downstream: options.downstream === true,
          include_upstream: options.upstream === true,
        },
      });
      await session.printDone(marked, `Task ${shown} of ${instance.runId} marked as ${state}.`);
    });

  instanceCommand("set")
    .description("change the note of a task")
    .requiredOption("--note <text>", "the new note; an empty text removes it")
    .addHelpText("after", examples('tradewind tasks set etl @latest load --note "The disk was full."'))
    .action(async (dag, run, taskId, { mapIndex, note }) => {
      const instance = await name(dag, run, [taskId, mapIndex]);
      const { client } = session;
      const changed = await client.patch<unknown>(instancePath(instance), {
        what: `cannot change ${taskId}`,
        body: { note: note || null },
      });
      await session.printDone(
        changed,
        `Note of ${taskId} of ${instance.runId} ${note ? "saved" : "removed"}.`,
      );
    });

  return tasks;
}
