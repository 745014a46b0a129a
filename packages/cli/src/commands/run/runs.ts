import { Argument, Command, Option } from "@commander-js/extra-typings";
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
import { type RunTimeline, timelineLines } from "../../output/run-timeline.ts";
import { runColumns, runFields, watchRun } from "../../output/run-view.ts";
import type { Session } from "../../session.ts";
import { submitManualCommand } from "../task/manual-commands.ts";
import { addEditCommands } from "./run-edits.ts";
import { addLogsCommand } from "./run-logs.ts";

const DEADLINES_SHOWN = 10;

export function command(session: Session) {
  const runs = new Command("runs")
    .description("list, inspect, wait for, cancel and rerun runs")
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
    .description("list runs by due time, newest first")
    .argument("[dag]", "only runs of this DAG")
    .option("--dag <dag>", "same as the argument")
    .addOption(
      new Option("--state <state...>", "only runs in these states").choices([
        "queued",
        "running",
        "success",
        "failed",
      ]),
    )
    .option(
      "--parent <dag/run>",
      "only runs started by tasks of this run (run as for `runs show`)",
      parentRun,
    )
    .option("--since <date>", SINCE, parseBound)
    .option("--until <date>", UNTIL, parseBound)
    .option("--limit <n>", "maximum number of rows; 0 = no limit", wholeNumber(0), 25)
    .addHelpText(
      "after",
      examples(
        "tradewind runs list etl",
        "# failed runs of the last three hours, all DAGs",
        "tradewind runs list --since 3h --state failed",
        "tradewind runs list etl --since 2026-11-10 --until 2026-11-12 --limit 0",
      ),
    )
    .action(async (named, { dag = named, since, state, limit, parent, until }) => {
      if (named !== undefined && named !== dag)
        throw usageError(`two DAGs are named: ${named} and ${dag}.`, "name one DAG");
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
      await session.printList(listed, runColumns(terminal, listed.items), "No runs match.");
    });

  runs
    .command("show")
    .description("show a run: progress, missed deadlines and the first failure")
    .argument("<dag>")
    .argument("<run>", RUN_ARGUMENT)
    .option("--timeline", "when each task did what, the critical path, and the expected end")
    .addHelpText(
      "after",
      examples(
        "tradewind runs show etl @latest",
        "tradewind runs show etl 2026-11-15",
        "# where did the time go?",
        "tradewind runs show etl @latest --timeline",
        "# the latest failed run, and why it failed",
        "tradewind runs show etl @failed",
      ),
    )
    .action(async (dag, given, { timeline: withTimeline }) => {
      const runId = await findRunId(session.client, dag, given);
      const what = `cannot show the run ${runId} of ${dag}`;
      if (withTimeline) {
        const timeline = await session.client.get<RunTimeline>(`${runPath(dag, runId)}/timeline`, { what });
        if (session.format !== "table") return session.printObject(timeline, []);
        for (const line of timelineLines(terminal, timeline)) terminal.data(line);
        return;
      }
      const run = await session.client.get<DagRun>(runPath(dag, runId), { what });
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
    .description("wait for the end of a run; exit 0 on success, 1 on failure, 124 on timeout")
    .argument("<dag>")
    .argument("<run>", RUN_ARGUMENT)
    .option("--timeout <duration>", "stop waiting after this time, e.g. 90s, 15m", parseDuration)
    .addHelpText("after", examples("tradewind runs wait etl @latest --timeout 15m"))
    .action(async (dag, given, { timeout }) => {
      const runId = await findRunId(session.client, dag, given);
      session.note(`Waiting for run ${runId} of ${dag}.`);
      session.exitCode = await watchRun(session, { dagId: dag, runId, timeoutMs: timeout });
    });

  runs
    .command("stop")
    .description("close a run: stop streaming tasks, skip tasks that wait for a signal, finish the rest")
    .argument("<dag>")
    .argument("<run>", RUN_ARGUMENT)
    .addHelpText("after", examples("tradewind runs stop online_model @latest"))
    .action(async (dag, given) => {
      const runId = await findRunId(session.client, dag, given);
      await submitManualCommand(session, { dagId: dag, runId, taskId: null, action: "stop" });
    });

  addEditCommands(runs, session);

  runs
    .command("mark")
    .description("end a run in a state; its tasks that have not ended are stopped")
    .argument("<dag>")
    .argument("<run>", RUN_ARGUMENT)
    .addArgument(new Argument("<state>").choices(["success", "failed"]))
    .addHelpText("after", examples("tradewind runs mark etl @latest success"))
    .action(async (dag, given, state) => {
      const runId = await findRunId(session.client, dag, given);
      await session.confirm(`Mark run ${runId} of ${dag} as ${state}?`);
      const run = await session.client.patch<DagRun>(runPath(dag, runId), {
        what: `cannot mark the run ${runId} of ${dag}`,
        body: { state },
      });
      await session.printDone(run, `Run ${runId} of ${dag} marked as ${state}.`);
    });

  runs
    .command("set")
    .description("change the note of a run")
    .argument("<dag>")
    .argument("<run>", RUN_ARGUMENT)
    .requiredOption("--note <text>", "the new note; an empty text removes it")
    .addHelpText("after", examples('tradewind runs set etl @failed --note "The partner was late."'))
    .action(async (dag, given, { note }) => {
      const runId = await findRunId(session.client, dag, given);
      const run = await session.client.patch<DagRun>(runPath(dag, runId), {
        what: `cannot change the run ${runId} of ${dag}`,
        body: { note: note || null },
      });
      await session.printDone(run, `Note of run ${runId} of ${dag} ${note ? "saved" : "removed"}.`);
    });

  runs
    .command("delete")
    .description("delete a run with its task instances and outputs")
    .argument("<dag>")
    .argument("<run>", RUN_ARGUMENT)
    .addHelpText("after", examples("tradewind runs delete etl 2026-11-15 --yes"))
    .action(async (dag, given) => {
      const runId = await findRunId(session.client, dag, given);
      await session.confirm(`Delete run ${runId} of ${dag} with its tasks and outputs?`);
      await session.client.delete(runPath(dag, runId), { what: `cannot delete the run ${runId} of ${dag}` });
      await session.printDone(
        { dag_id: dag, dag_run_id: runId, deleted: true },
        `Run ${runId} of ${dag} deleted.`,
      );
    });

  return runs;
}

/** DAG ids contain no slash; run ids may. */
function parentRun(text: string): { readonly dag: string; readonly run: string } {
  const slash = text.indexOf("/");
  if (slash <= 0 || slash === text.length - 1)
    throw usageError(
      `${text} does not name a run of a DAG.`,
      "give both, e.g. --parent report/manual__2027-01-04",
    );
  return { dag: text.slice(0, slash), run: text.slice(slash + 1) };
}
