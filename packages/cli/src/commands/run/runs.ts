import { Command, Option } from "@commander-js/extra-typings";
import { path } from "../../client/client.ts";
import { findRunId, RUN_ARGUMENT } from "../../client/find-run.ts";
import { firstFailure } from "../../client/first-failure.ts";
import type { DagRun, Deadline } from "../../client/resources.ts";
import { rangeQuery, SINCE, UNTIL } from "../../client/select-runs.ts";
import { usageError } from "../../errors.ts";
import { examples } from "../../examples.ts";
import { parseBound } from "../../input/dates.ts";
import { parseDuration, wholeNumber } from "../../input/values.ts";
import { logCommand } from "../../output/command-line.ts";
import { runColumns, runFields, watchRun } from "../../output/run-view.ts";
import type { Session } from "../../session.ts";
import { giveOrder } from "../task/orders.ts";
import { addEditCommands } from "./run-edits.ts";
import { addLogsCommand } from "./run-logs.ts";

const DEADLINES_SHOWN = 10;

export function command(session: Session) {
  const runs = new Command("runs")
    .description("list, show, wait for, stop, cancel and clear runs, read their logs")
    .addHelpText(
      "after",
      examples("tradewind runs list etl --state failed", "tradewind runs logs etl @latest"),
    );
  const { terminal } = session;
  const parentQuery = async ({ dag, run }: ReturnType<typeof parentRun>) => {
    const runId = await findRunId(session.client, dag, run);
    await session.client.get<DagRun>(runPath(dag, runId), { what: `cannot list the runs of ${dag}/${run}` });
    return { parent_dag_id: dag, parent_dag_run_id: runId };
  };
  const runPath = (dagId: string, runId: string) => path`/dags/${dagId}/dagRuns/${runId}`;

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
    .option("--since <date>", SINCE, parseBound)
    .option("--until <date>", UNTIL, parseBound)
    .option("--limit <n>", "how many at most; 0 = all", wholeNumber(0), 25)
    .addHelpText(
      "after",
      examples(
        "tradewind runs list etl",
        "# what has failed in the last three hours, in any DAG?",
        "tradewind runs list --since 3h --state failed",
        "tradewind runs list etl --since 2026-11-10 --until 2026-11-12 --limit 0",
      ),
    )
    .action(async (named, { dag = named, since, state, limit, parent, until }) => {
      if (named !== undefined && named !== dag)
        throw usageError(`runs of two DAGs are asked for: ${named} and ${dag}.`, "name one of them");
      const listed = await session.client.list<DagRun>({
        path: path`/dags/${dag ?? "~"}/dagRuns`,
        key: "dag_runs",
        what: dag === undefined ? "cannot list the runs" : `cannot list the runs of ${dag}`,
        query: {
          state,
          order_by: "-run_after",
          ...(await rangeQuery(session.client, dag, { since, until })),
          ...(parent && (await parentQuery(parent))),
        },
        limit,
      });
      await session.printList(listed, runColumns(terminal, listed.items), "There are no such runs.");
    });

  runs
    .command("show")
    .description("show one run, how far its tasks are, missed deadlines and the first failure")
    .argument("<dag>")
    .argument("<run>", RUN_ARGUMENT)
    .addHelpText(
      "after",
      examples(
        "tradewind runs show etl @latest",
        "tradewind runs show etl 2026-11-15",
        "# the latest run that failed, and why",
        "tradewind runs show etl @failed",
      ),
    )
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
      const { items: missed } = await session.client.list<Deadline>({
        path: "/deadlines",
        key: "deadlines",
        what: `cannot list the deadlines of the run ${runId} of ${dag}`,
        query: { dag_id: dag, dag_run_id: runId, state: "missed", order_by: "due_at" },
        limit: DEADLINES_SHOWN,
      });
      const failureLog = failure && logCommand(session, failure.instance);
      await session.printObject(run, runFields(run, { failure, failureLog, missed }));
    });

  addLogsCommand(runs, session);

  runs
    .command("wait")
    .description("wait for the end of a run: exit 0 when it succeeded, 1 when it failed, 124 after --timeout")
    .argument("<dag>")
    .argument("<run>", RUN_ARGUMENT)
    .option("--timeout <duration>", "e.g. 90s, 15m", parseDuration)
    .addHelpText("after", examples("tradewind runs wait etl @latest --timeout 15m"))
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
    .addHelpText("after", examples("tradewind runs stop online_model @latest"))
    .action(async (dag, given) => {
      const runId = await findRunId(session.client, dag, given);
      await giveOrder(session, { dagId: dag, runId, taskId: null, action: "stop" });
    });

  addEditCommands(runs, session);

  runs
    .command("delete")
    .description("delete a run with its tasks and outputs")
    .argument("<dag>")
    .argument("<run>", RUN_ARGUMENT)
    .addHelpText("after", examples("tradewind runs delete etl 2026-11-15 --yes"))
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
