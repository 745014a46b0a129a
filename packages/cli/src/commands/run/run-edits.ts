/** `tradewind runs clear` and `runs cancel`: one run, several runs, or a range. */
import { type Command, Option } from "@commander-js/extra-typings";
import { path } from "../../client/client.ts";
import { RUN_ARGUMENT } from "../../client/find-run.ts";
import { type DagRun, isRunEnded, type TaskInstance } from "../../client/resources.ts";
import { type RunSelection, SINCE, selectRuns, UNTIL } from "../../client/select-runs.ts";
import { describeMove, findMove } from "../../client/version-move.ts";
import { CliError } from "../../errors.ts";
import { examples } from "../../examples.ts";
import { EXIT } from "../../exit-code.ts";
import { parseBound } from "../../input/dates.ts";
import { applyToRuns, countText, inspectRuns, showPreview } from "../../output/changed-runs.ts";
import { commandLine } from "../../output/command-line.ts";
import { instanceName } from "../../output/instance-name.ts";
import { watchRun } from "../../output/run-view.ts";
import type { Session } from "../../session.ts";

const NAMES_SHOWN = 10;

export function addEditCommands(runs: Command, session: Session): void {
  runs
    .command("cancel")
    .description("cancel runs: stop their tasks and end the runs as failed")
    .argument("<dag>")
    .argument("[run...]", RUN_ARGUMENT)
    .option("--since <date>", SINCE, parseBound)
    .option("--until <date>", UNTIL, parseBound)
    .addOption(
      new Option("--state <state...>", "only runs in these states (default for a range: both)").choices([
        "queued",
        "running",
      ]),
    )
    .option("--dry-run", "only show the runs")
    .addHelpText(
      "after",
      examples(
        "tradewind runs cancel etl @latest",
        "# all queued and running runs; shows them and asks first",
        "tradewind runs cancel etl --state queued running",
        "# in a script: do not ask",
        "tradewind runs cancel etl --since 2026-11-15 --until 2026-11-17 --yes",
      ),
    )
    .action(async (dag, names, { dryRun, ...range }) => {
      const selection = { ...range, names, usualStates: ["queued", "running"] };
      await cancelRuns(session, dag, selection, dryRun === true);
    });

  runs
    .command("clear")
    .description("rerun the tasks of runs")
    .argument("<dag>")
    .argument("[run...]", RUN_ARGUMENT)
    .option("--since <date>", SINCE, parseBound)
    .option("--until <date>", UNTIL, parseBound)
    .addOption(
      new Option(
        "--state <state...>",
        "only runs in these states (default for a range: success and failed)",
      ).choices(["queued", "running", "success", "failed"]),
    )
    .option("--only-failed", "only tasks that failed, were cancelled, or did not run because of that")
    .option("--latest-version", "use the current version of the DAG (default: the version of the run)")
    .option("--dry-run", "only show the runs and tasks")
    .option("--wait", "wait for the end of the run (one run only)")
    .addHelpText(
      "after",
      examples(
        "tradewind runs clear etl @failed --only-failed",
        "tradewind runs clear etl 2026-11-15 2026-11-16",
        "# preview",
        "tradewind runs clear etl --since 2026-11-10 --until 2026-11-12 --dry-run",
        "# failed runs of the last two days, without asking",
        "tradewind runs clear etl --since 2d --state failed --only-failed --yes",
      ),
    )
    .action(async (dag, names, { since, state, until, ...options }) => {
      const selection = { names, since, state, until, usualStates: ["success", "failed"] };
      await clearRuns(session, dag, selection, options);
    });
}

const runPath = (dagId: string, runId: string) => path`/dags/${dagId}/dagRuns/${runId}`;

async function cancelRuns(
  session: Session,
  dag: string,
  selection: RunSelection,
  isDryRun: boolean,
): Promise<void> {
  const { client } = session;
  const cancel = (runId: string) =>
    client.post<DagRun>(`${runPath(dag, runId)}/cancel`, {
      what: `cannot cancel the run ${runId} of ${dag}`,
    });
  const selected = await selectRuns(client, dag, selection);
  const [only, ...others] = selected;
  const isNamed = only && others.length === 0 && selection.names.length > 0;
  if (isNamed && isRunEnded(only)) throw runEnded(session, only);
  if (isNamed && !isDryRun) {
    const runId = only.dag_run_id;
    await session.confirm(`Cancel run ${runId} of ${dag}?`);
    const run = await cancel(runId);
    const rest = run.state === "running" ? " Its teardowns still run; cancel it again to stop them." : "";
    return session.printDone(run, `Run ${runId} of ${dag} cancelled.${rest}`);
  }
  // Cancel queued runs first, newest first: a free slot must not start another run.
  const open = selected.filter((run) => !isRunEnded(run)).toReversed();
  const ordered = open.toSorted((a, b) => Number(a.state === "running") - Number(b.state === "running"));
  const affected = await inspectRuns(session, ordered, async (run) => {
    const what = `cannot read the run ${run.dag_run_id} of ${dag}`;
    const { progress } = await client.get<DagRun>(runPath(dag, run.dag_run_id), { what });
    return { run, tasks: progress ? progress.total - progress.finished : 0 };
  });
  const ended = selected.filter(isRunEnded).map(({ dag_run_id, state }) => `${dag_run_id} (${state})`);
  if (affected.length === 0)
    return session.printDone(
      [],
      ended.length === 0
        ? "No queued or running runs match."
        : `Nothing to cancel: already ended: ${ended.join(", ")}.`,
    );
  if (ended.length > 0) session.note(`Skipped, already ended: ${ended.join(", ")}.`);
  showPreview(session, affected);
  const count = countText(affected);
  if (isDryRun) return session.printDone(shown(affected), `Would cancel ${count} of ${dag}.`);
  await session.confirm(`Cancel ${count} of ${dag}?`);
  const change = (runId: string) =>
    cancel(runId).then(
      () => true,
      // The run has ended in the meantime.
      (error: unknown) => {
        if (error instanceof CliError && error.exit === EXIT.conflict) return false;
        throw error;
      },
    );
  await applyToRuns(session, {
    dagId: dag,
    affected,
    change,
    participle: "cancelled",
    unneeded: "had ended",
  });
}

function runEnded(session: Session, { dag_id, dag_run_id, state }: DagRun): CliError {
  return new CliError(
    "TW_CLI_RUN_ENDED",
    `the run ${dag_run_id} of ${dag_id} has already ended (${state}).`,
    {
      exit: EXIT.conflict,
      remedy: `rerun it: \`${commandLine(session, "runs", "clear", dag_id, dag_run_id)}\``,
    },
  );
}

interface ClearOptions {
  readonly onlyFailed?: true | undefined;
  readonly latestVersion?: true | undefined;
  readonly dryRun?: true | undefined;
  readonly wait?: true | undefined;
}

async function clearRuns(
  session: Session,
  dag: string,
  selection: RunSelection,
  options: ClearOptions,
): Promise<void> {
  const selected = await selectRuns(session.client, dag, selection);
  const [only, ...others] = selected;
  if (only && others.length === 0) return clearRun(session, dag, only, options);
  if (options.wait)
    session.note("--wait is ignored: it needs a single run. `tradewind runs list` shows the progress.");
  const clear = clearCall(session, dag, options);
  const inspected = await inspectRuns(session, selected, async (run) => ({
    run,
    tasks: await countAgain(session, run, await clear(run.dag_run_id, true), options),
  }));
  const affected = inspected.filter(({ tasks }) => tasks !== 0);
  if (affected.length === 0) return session.printDone([], "Nothing to clear.");
  showPreview(session, affected);
  const count = countText(affected);
  const where = options.latestVersion ? " on the current version" : "";
  if (options.dryRun) return session.printDone(shown(affected), `Would rerun ${count} of ${dag}${where}.`);
  await session.confirm(`Rerun ${count} of ${dag}${where}?`);
  const change = async (runId: string) => {
    await clear(runId, false);
    return true;
  };
  await applyToRuns(session, { dagId: dag, affected, change, participle: "cleared", unneeded: "" });
}

async function clearRun(session: Session, dag: string, run: DagRun, options: ClearOptions): Promise<void> {
  const runId = run.dag_run_id;
  const clear = clearCall(session, dag, options);
  const affected = await clear(runId, true);
  const isWhole = (await countAgain(session, run, affected, options)) === null;
  if (affected.length === 0 && !isWhole) return session.printDone(affected, "Nothing to clear.");
  const move = options.latestVersion ? await findMove(session.client, dag, runId) : null;
  const { again, others, where } = describeMove(affected, move);
  const tasks = isWhole ? "all tasks" : `${again.length} task${again.length === 1 ? "" : "s"}`;
  const list = again.length === 0 ? "" : `: ${names(again)}`;
  if (options.dryRun) return session.printDone(affected, `Would rerun ${tasks}${where}${list}${others}.`);
  await session.confirm(`Rerun ${tasks} of ${runId}${where}${list}${others}?`);
  await clear(runId, false);
  await session.printDone(affected, `Rerunning ${tasks} of ${runId}${where}${others}.`);
  if (options.wait) session.exitCode = await watchRun(session, { dagId: dag, runId, timeoutMs: undefined });
}

function clearCall({ client }: Session, dag: string, { latestVersion, onlyFailed }: ClearOptions) {
  return async (runId: string, isDryRun: boolean): Promise<readonly TaskInstance[]> => {
    const body = {
      dry_run: isDryRun,
      only_failed: onlyFailed === true,
      run_on_latest_version: latestVersion === true,
    };
    const what = `cannot clear the run ${runId} of ${dag}`;
    const answer = await client.post<{ task_instances?: TaskInstance[] }>(`${runPath(dag, runId)}/clear`, {
      what,
      body,
    });
    return answer.task_instances ?? [];
  };
}

/** null: all of its tasks. A run that was cancelled before its start has no instances yet. */
async function countAgain(
  { client }: Session,
  { dag_id, dag_run_id, state }: DagRun,
  affected: readonly TaskInstance[],
  { onlyFailed }: ClearOptions,
): Promise<number | null> {
  if (affected.length > 0) return affected.length;
  if (state !== "failed" && (onlyFailed || state !== "success")) return 0;
  const tasks = `${runPath(dag_id, dag_run_id)}/taskInstances`;
  const what = `cannot read the run ${dag_run_id} of ${dag_id}`;
  const { total_entries } = await client.get<{ total_entries: number }>(tasks, { what, query: { limit: 1 } });
  return total_entries === 0 ? null : 0;
}

/** JSON output. */
function shown(affected: readonly { readonly run: DagRun; readonly tasks: number | null }[]) {
  return affected.map(({ run, tasks }) => ({ ...run, affected_tasks: tasks }));
}

function names(instances: readonly TaskInstance[]): string {
  const shown = instances.slice(0, NAMES_SHOWN).map(instanceName);
  return instances.length > shown.length
    ? `${shown.join(", ")} and ${instances.length - shown.length} more`
    : shown.join(", ");
}
