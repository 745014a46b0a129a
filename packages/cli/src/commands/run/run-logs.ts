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
    .description("print the logs of all tasks of a run, merged by time")
    .argument("<dag>")
    .argument("<run>", RUN_ARGUMENT)
    .option("-f, --follow", "follow the log until the run has ended; exit 1 if it fails")
    .option("--task <task...>", "only these tasks")
    .addOption(new Option("--level <level>", "minimum level").choices(["debug", "info", "warn", "error"]))
    .option("--callbacks", "include the logs of callbacks and onSignal")
    .addHelpText(
      "after",
      examples(
        "tradewind runs logs etl @latest",
        "# follow the latest run",
        "tradewind runs logs etl @latest -f",
        "# what went wrong in the latest failed run?",
        "tradewind runs logs etl @failed --level warn --callbacks",
      ),
    )
    .action(async (dag, given, { callbacks, follow, level, task }) => {
      const runId = await findRunId(session.client, dag, given);
      const choice = { taskIds: task, level, withCallbacks: callbacks === true, follow: follow === true };
      await requireTasks(session, { dag, runId }, task ?? []);
      if (follow) await printIfQueued(session, { dag, runId });
      await session.interruptible(async (signal) => {
        const entries = readRunLog(session.client, { dagId: dag, runId }, choice, signal);
        const count = await printRunLog(session, entries);
        if (signal.aborted) {
          session.exitCode = EXIT.interrupted;
          return;
        }
        await printEnd(session, { dag, runId, count, isFollowed: choice.follow });
      });
    });
}

/** An unknown task would look like a task without log lines. */
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

/** Nothing is printed until the run starts, which may never happen. */
async function printIfQueued(session: Session, named: NamedRun): Promise<void> {
  const run = await readRun(session, named);
  if (run.state === "queued") session.note(notStarted(run));
}

async function printEnd(
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
    run.state === "queued" ? notStarted(run) : `No matching log lines. Tasks and their states: ${list}`,
  );
}

function notStarted({ dag_run_id, held_by = [] }: DagRun): string {
  const [reason] = held_by;
  const why = reason ? `: ${reason.message} [${reason.code}]` : ".";
  return `No log yet: run ${dag_run_id} has not started${why}`;
}
