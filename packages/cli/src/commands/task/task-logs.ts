import type { Command } from "@commander-js/extra-typings";
import type { Client } from "../../client/client.ts";
import { findRunId, RUN_ARGUMENT } from "../../client/find-run.ts";
import { HttpError } from "../../client/http-error.ts";
import { findMapIndex, MAP_INDEX_FORMS } from "../../client/map-index.ts";
import type { TaskInstance } from "../../client/resources.ts";
import { awaitInstance, followLog, getInstance, type InstanceName, readLog } from "../../client/task-log.ts";
import { CliError } from "../../errors.ts";
import { examples } from "../../examples.ts";
import { EXIT } from "../../exit-code.ts";
import { wholeNumber } from "../../input/values.ts";
import { instanceName } from "../../output/instance-name.ts";
import { printEntries } from "../../output/log-line.ts";
import { stateName } from "../../output/state.ts";
import type { Session } from "../../session.ts";
import { explainEmptyLog } from "../../why/empty-log.ts";
import { RunFacts } from "../../why/run-facts.ts";

export function addLogsCommand(tasks: Command, session: Session): void {
  tasks
    .command("logs")
    .description("print the log of a task; `runs logs` prints the logs of all tasks of a run")
    .argument("<dag>")
    .argument("<run>", RUN_ARGUMENT)
    .argument("<task>")
    .option("-f, --follow", "follow the log until the task has ended")
    .option("--try <n>", "try number (default: the latest)", wholeNumber(1))
    .option("--map-index <which>", `instance of a mapped task: ${MAP_INDEX_FORMS}`)
    .addHelpText(
      "after",
      examples(
        "tradewind tasks logs etl @latest load",
        "tradewind tasks logs etl @latest load -f",
        "# the first try of one item of a mapped task",
        "tradewind tasks logs etl 2026-11-15 load --map-index 3 --try 1",
      ),
    )
    .action(async (dag, run, taskId, options) => {
      const { follow, mapIndex } = options;
      // An instance given by its index may not exist yet.
      const isAwaited = follow === true && /^\d{1,9}$/.test(mapIndex ?? "");
      const task = { dagId: dag, runId: await findRunId(session.client, dag, run), taskId };
      const found = await findMapIndex(session.client, task, isAwaited ? undefined : mapIndex);
      const name = { ...task, mapIndex: isAwaited ? Number(mapIndex) : found };
      await (follow ? follows(session, name, options.try) : prints(session, name, options.try));
    });
}

async function prints(session: Session, name: InstanceName, wanted: number | undefined): Promise<void> {
  const instance = await findInstance(session.client, name);
  const tryNumber = instance ? chosenTry(instance, wanted) : 1;
  const count = instance ? await printEntries(session, readLog(session.client, name, tryNumber)) : 0;
  if (count === 0) await explainEmptyLog(session, name, { instance, tryNumber });
}

/** undefined: the run of the task has not started. */
async function findInstance(client: Client, name: InstanceName): Promise<TaskInstance | undefined> {
  try {
    return await getInstance(client, name);
  } catch (error) {
    if (!(error instanceof HttpError) || error.status !== 404 || error.code !== "NOT_FOUND") throw error;
    const verdict = await new RunFacts(client, name.dagId, name.runId)
      .verdict(name.taskId, name.mapIndex)
      .catch(() => null);
    if (verdict?.run_state !== "queued") throw error;
    return undefined;
  }
}

async function follows(session: Session, name: InstanceName, wanted: number | undefined): Promise<void> {
  const { client } = session;
  await session.interruptible(async (signal) => {
    try {
      const tryNumber = chosenTry(await awaitInstance(client, name, signal), wanted);
      const count = await printEntries(session, followLog(client, name, { tryNumber, signal }));
      if (!signal.aborted) {
        const ended = await getInstance(client, name);
        if (count === 0) await explainEmptyLog(session, name, { instance: ended, tryNumber });
        session.note(`Task ${instanceName(ended)}: ${stateName(ended.state)}.`);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    if (signal.aborted) session.exitCode = EXIT.interrupted;
  });
}

/** Before the first try, follow the log of try 1. */
function chosenTry(instance: TaskInstance, wanted: number | undefined): number {
  const latest = Math.max(instance.try_number, 1);
  if (wanted === undefined || wanted <= latest) return wanted ?? latest;
  throw new CliError(
    "TW_CLI_NO_SUCH_TRY",
    `task ${instanceName(instance)} has no try ${wanted}; the latest is ${instance.try_number}.`,
    { exit: EXIT.notFound, remedy: "`tradewind tasks list` shows the number of tries" },
  );
}
