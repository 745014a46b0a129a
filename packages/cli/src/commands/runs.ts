import { Command, Option } from "@commander-js/extra-typings";
import { path } from "../client/client.ts";
import { findRunId, RUN_ARGUMENT } from "../client/find-run.ts";
import { firstFailure } from "../client/first-failure.ts";
import type { DagRun, TaskInstance } from "../client/resources.ts";
import { readRunLog } from "../client/task-log.ts";
import { findMove, tellMove } from "../client/version-move.ts";
import { usageError } from "../errors.ts";
import { parseDuration, wholeNumber } from "../input/values.ts";
import { instanceName } from "../output/instance-name.ts";
import { printEntries } from "../output/log-line.ts";
import { runColumns, runFields, watchRun } from "../output/run-view.ts";
import type { Session } from "../session.ts";
import { giveOrder } from "./orders.ts";

export function command(session: Session) {
  const runs = new Command("runs").description(
    "list, show, wait for, stop, cancel and clear runs, read their callbacks' logs",
  );
  const { terminal } = session;
  const parentQuery = async ({ dag, run }: ReturnType<typeof parentRun>) => {
    const runId = await findRunId(session.client, dag, run);
    await session.client.get<DagRun>(runPath(dag, runId), { what: `cannot list the runs of ${dag}/${run}` });
    return { parent_dag_id: dag, parent_dag_run_id: runId };
  };
  const runPath = (dagId: string, runId: string) => path`/dags/${dagId}/dagRuns/${runId}`;
  const hasEndedUnbegun = async (dagId: string, runId: string, onlyFailed: boolean) => {
    const what = `cannot read the run ${runId} of ${dagId}`;
    const { state } = await session.client.get<DagRun>(runPath(dagId, runId), { what });
    if (state !== "failed" && (onlyFailed || state !== "success")) return false;
    const tasks = `${runPath(dagId, runId)}/taskInstances`;
    const { total_entries } = await session.client.get<{ total_entries: number }>(tasks, {
      what,
      query: { limit: 1 },
    });
    return total_entries === 0;
  };

  runs
    .command("list")
    .description("list runs, newest first")
    .argument("[dag]", "only of this DAG")
    .option("--dag <dag>", "the same")
    .addOption(
      new Option("--state <state...>", "only in these states").choices([
        "queued",
        "running",
        "success",
        "failed",
      ]),
    )
    .option(
      "--parent <dag/run>",
      "only those that tasks of this run have asked for; run: as for `show`",
      parentRun,
    )
    .option("--limit <n>", "how many at most; 0 = all", wholeNumber(0), 25)
    .action(async (named, { dag = named, state, limit, parent }) => {
      if (named !== undefined && named !== dag)
        throw usageError(`runs of two DAGs are asked for: ${named} and ${dag}.`, "name one of them");
      const listed = await session.client.list<DagRun>({
        path: path`/dags/${dag ?? "~"}/dagRuns`,
        key: "dag_runs",
        what: dag === undefined ? "cannot list the runs" : `cannot list the runs of ${dag}`,
        query: { state, order_by: "-run_after", ...(parent && (await parentQuery(parent))) },
        limit,
      });
      await session.printList(listed, runColumns(terminal, listed.items), "There are no such runs.");
    });

  runs
    .command("show")
    .description("show one run and how far its tasks are")
    .argument("<dag>")
    .argument("<run>", RUN_ARGUMENT)
    .action(async (dag, given) => {
      const runId = await findRunId(session.client, dag, given);
      const run = await session.client.get<DagRun>(runPath(dag, runId), {
        what: `cannot show the run ${runId} of ${dag}`,
      });
      if (session.format !== "table") return session.printObject(run, []);
      const failure =
        run.state === "failed" || run.retry_at
          ? await firstFailure(session.client, runPath(dag, runId))
          : undefined;
      await session.printObject(run, runFields(run, failure));
    });

  runs
    .command("logs")
    .description("print what the run's callbacks (and onSignal) have said; `tasks logs` has the tasks'")
    .argument("<dag>")
    .argument("<run>", RUN_ARGUMENT)
    .action(async (dag, given) => {
      const runId = await findRunId(session.client, dag, given);
      if ((await printEntries(session, readRunLog(session.client, dag, runId))) > 0) return;
      session.note(
        `No callback of ${runId} has said anything. The logs of its tasks: \`tradewind tasks logs\``,
      );
    });

  runs
    .command("wait")
    .description("wait for the end of a run: exit 0 when it succeeded, 1 when it failed, 124 after --timeout")
    .argument("<dag>")
    .argument("<run>", RUN_ARGUMENT)
    .option("--timeout <duration>", "e.g. 90s, 15m", parseDuration)
    .action(async (dag, given, { timeout }) => {
      const runId = await findRunId(session.client, dag, given);
      session.exitCode = await watchRun(session, { dagId: dag, runId, timeoutMs: timeout });
    });

  runs
    .command("stop")
    .description(
      "close a run: its streaming tasks stop, what waits for a start is skipped, the rest finishes",
    )
    .argument("<dag>")
    .argument("<run>", RUN_ARGUMENT)
    .action(async (dag, given) => {
      const runId = await findRunId(session.client, dag, given);
      await giveOrder(session, { dagId: dag, runId, taskId: null, action: "stop" });
    });

  runs
    .command("cancel")
    .description("end a run as failed and stop what is running in it")
    .argument("<dag>")
    .argument("<run>", RUN_ARGUMENT)
    .action(async (dag, given) => {
      const runId = await findRunId(session.client, dag, given);
      await session.confirm(`Cancel the run ${runId} of ${dag}?`);
      const run = await session.client.post<DagRun>(`${runPath(dag, runId)}/cancel`, {
        what: `cannot cancel the run ${runId} of ${dag}`,
      });
      const rest =
        run.state === "running" ? " Its teardowns still run; to stop them, too, cancel it once more." : "";
      await session.printDone(run, `Run ${runId} of ${dag} cancelled.${rest}`);
    });

  runs
    .command("clear")
    .description("run the tasks of a run again")
    .argument("<dag>")
    .argument("<run>", RUN_ARGUMENT)
    .option("--only-failed", "only what failed, was cancelled, or was kept from running by that")
    .option("--latest-version", "with the DAG's current version; the run's own when not given")
    .option("--dry-run", "only say which tasks")
    .option("--wait", "watch the run until it has ended")
    .action(async (dag, given, options) => {
      const runId = await findRunId(session.client, dag, given);
      const what = `cannot clear the run ${runId} of ${dag}`;
      const clear = (dryRun: boolean) =>
        session.client.post<{ task_instances?: TaskInstance[] }>(`${runPath(dag, runId)}/clear`, {
          what,
          body: {
            dry_run: dryRun,
            only_failed: options.onlyFailed === true,
            run_on_latest_version: options.latestVersion === true,
          },
        });
      const affected = (await clear(true)).task_instances ?? [];
      // A run that was cancelled before it began has no task to name.
      const isWhole =
        affected.length === 0 && (await hasEndedUnbegun(dag, runId, options.onlyFailed === true));
      if (affected.length === 0 && !isWhole) return session.printDone(affected, "There is nothing to clear.");
      const move = options.latestVersion ? await findMove(session.client, dag, runId) : null;
      const { again, others, where } = tellMove(affected, move);
      const tasks = isWhole ? "all tasks" : `${again.length} task${again.length === 1 ? "" : "s"}`;
      if (options.dryRun) {
        const list = again.length === 0 ? "" : `: ${names(again)}`;
        return session.printDone(affected, `${tasks} would run again${where}${list}${others}.`);
      }
      await session.confirm(`Run ${tasks} of ${runId} again${where}${others}?`);
      await clear(false);
      await session.printDone(affected, `${tasks} of ${runId} will run again${where}${others}.`);
      if (options.wait)
        session.exitCode = await watchRun(session, { dagId: dag, runId, timeoutMs: undefined });
    });

  runs
    .command("delete")
    .description("delete a run with its tasks and outputs")
    .argument("<dag>")
    .argument("<run>", RUN_ARGUMENT)
    .action(async (dag, given) => {
      const runId = await findRunId(session.client, dag, given);
      await session.confirm(`Delete the run ${runId} of ${dag}, its tasks and their outputs?`);
      await session.client.delete(runPath(dag, runId), { what: `cannot delete the run ${runId} of ${dag}` });
      await session.printDone(
        { dag_id: dag, dag_run_id: runId, deleted: true },
        `Run ${runId} of ${dag} deleted.`,
      );
    });

  return runs;
}

/** Ids of DAGs have no slash; those of runs may. */
function parentRun(text: string): { readonly dag: string; readonly run: string } {
  const slash = text.indexOf("/");
  if (slash <= 0 || slash === text.length - 1)
    throw usageError(`${text} is not a run of a DAG.`, "name both, as in --parent report/manual__2027-01-04");
  return { dag: text.slice(0, slash), run: text.slice(slash + 1) };
}

function names(instances: readonly TaskInstance[]): string {
  const shown = instances.slice(0, 10).map(instanceName);
  return instances.length > shown.length
    ? `${shown.join(", ")} and ${instances.length - shown.length} more`
    : shown.join(", ");
}
