/** `tradewind runs logs`: the log of a whole run. */
import { type Command, Option } from "@commander-js/extra-typings";
import { path } from "../../client/client.ts";
import { findRunId, RUN_ARGUMENT } from "../../client/find-run.ts";
import type { DagRun } from "../../client/resources.ts";
import { readRunLog } from "../../client/run-log.ts";
import { examples } from "../../examples.ts";
import { EXIT } from "../../exit-code.ts";
import { commandLine } from "../../output/command-line.ts";
import { printRunLog } from "../../output/run-log.ts";
import { finishedLine } from "../../output/run-view.ts";
import type { Session } from "../../session.ts";

export function addLogsCommand(runs: Command, session: Session): void {
  runs
    .command("logs")
    .description("print the logs of all tasks of a run as one, in the order of time")
    .argument("<dag>")
    .argument("<run>", RUN_ARGUMENT)
    .option("-f, --follow", "go on until the run has ended; exit 1 when it failed")
    .option("--task <task...>", "only of these tasks")
    .addOption(
      new Option("--level <level>", "only lines of this level or above").choices([
        "debug",
        "info",
        "warn",
        "error",
      ]),
    )
    .option("--callbacks", "with what callbacks and onSignal have logged")
    .addHelpText(
      "after",
      examples(
        "tradewind runs logs etl @latest",
        "# follow a run that has just been triggered",
        "tradewind runs logs etl @latest -f",
        "# what went wrong in the latest run that failed?",
        "tradewind runs logs etl @failed --level warn --callbacks",
      ),
    )
    .action(async (dag, given, { callbacks, follow, level, task }) => {
      const runId = await findRunId(session.client, dag, given);
      const choice = { taskIds: task, level, withCallbacks: callbacks === true, follow: follow === true };
      await requireTasks(session, { dag, runId }, task ?? []);
      if (follow) await noteIfQueued(session, { dag, runId });
      await session.interruptible(async (signal) => {
        const entries = readRunLog(session.client, { dagId: dag, runId }, choice, signal);
        const count = await printRunLog(session, entries);
        if (signal.aborted) {
          session.exitCode = EXIT.interrupted;
          return;
        }
        await noteEnd(session, { dag, runId, count, isFollowed: choice.follow });
      });
    });
}

/** A task that does not exist would look like one that says nothing. */
async function requireTasks(
  { client }: Session,
  { dag, runId }: NamedRun,
  taskIds: readonly string[],
): Promise<void> {
  for (const taskId of taskIds)
    await client.get(path`/dags/${dag}/dagRuns/${runId}/taskInstances/${taskId}/why`, {
      what: `cannot read the log of ${taskId}`,
    });
}

interface NamedRun {
  readonly dag: string;
  readonly runId: string;
}

function readRun({ client }: Session, { dag, runId }: NamedRun): Promise<DagRun> {
  return client.get<DagRun>(path`/dags/${dag}/dagRuns/${runId}`, {
    what: `cannot read the run ${runId} of ${dag}`,
  });
}

/** Nothing is printed until it starts, which may be never. */
async function noteIfQueued(session: Session, named: NamedRun): Promise<void> {
  const run = await readRun(session, named);
  if (run.state === "queued") session.note(notStarted(run));
}

async function noteEnd(
  session: Session,
  { count, isFollowed, ...named }: NamedRun & { readonly count: number; readonly isFollowed: boolean },
): Promise<void> {
  if (count > 0 && !isFollowed) return;
  const run = await readRun(session, named);
  if (isFollowed) {
    session.note(finishedLine(session.terminal, run));
    if (run.state === "failed") session.exitCode = EXIT.failed;
    return;
  }
  const list = commandLine(session, "tasks", "list", named.dag, named.runId);
  session.note(
    run.state === "queued"
      ? notStarted(run)
      : `Nothing was logged that fits. The tasks and their states: ${list}`,
  );
}

function notStarted({ dag_run_id, held_by = [] }: DagRun): string {
  const [reason] = held_by;
  const why = reason ? `: ${reason.message} [${reason.code}]` : ".";
  return `There is no log yet: the run ${dag_run_id} has not started${why}`;
}
