import { Command } from "@commander-js/extra-typings";
import { path } from "../../client/client.ts";
import { instantOf } from "../../client/find-run.ts";
import type { Dag, DagRun } from "../../client/resources.ts";
import { examples } from "../../examples.ts";
import { parseDate } from "../../input/dates.ts";
import { parseConf, parseDuration } from "../../input/values.ts";
import { runFields, watchRun } from "../../output/run-view.ts";
import type { Session } from "../../session.ts";
import { surroundings, TEST_OPTIONS } from "../task/test-options.ts";
import { addErrorsCommand } from "./dag-errors.ts";
import { addGraphCommand } from "./dag-graph.ts";
import { addListCommand } from "./dag-list.ts";
import { addShowCommand } from "./dag-show.ts";
import { addVersionCommands } from "./dag-versions.ts";

export function command(session: Session) {
  const dags = new Command("dags")
    .description("list, inspect, trigger, pause and test DAGs")
    .addHelpText("after", examples("tradewind dags list", "tradewind dags trigger etl --wait"));

  addListCommand(dags, session);
  addShowCommand(dags, session);
  addGraphCommand(dags, session);
  addErrorsCommand(dags, session);
  addVersionCommands(dags, session);

  dags
    .command("trigger")
    .description("start a run of a DAG")
    .argument("<dag>")
    .option("--conf <json>", "params of the run: a JSON object, @file, or @- for stdin", parseConf)
    .option(
      "--logical-date <date>",
      "logical date: 2026-11-15 or 2026-11-15T02:00, in the DAG's time zone",
      parseDate,
    )
    .option("--run-id <id>", "id of the run; fails if a run has this id already")
    .option("--note <text>", "attach a note to the run")
    .option("--wait", "wait for the end of the run; exit 1 if it fails")
    .option("--timeout <duration>", "with --wait: stop waiting after this time, e.g. 15m", parseDuration)
    .addHelpText(
      "after",
      examples(
        "tradewind dags trigger etl",
        `tradewind dags trigger etl --conf '{"region":"eu"}'`,
        "tradewind dags trigger etl --logical-date 2026-11-15",
        "# in a script: exit 1 and print the first failure if the run fails",
        "tradewind dags trigger etl --wait --timeout 30m",
      ),
    )
    .action(async (dagId, options) => {
      const { logicalDate } = options;
      const run = await session.client.post<DagRun>(path`/dags/${dagId}/dagRuns`, {
        what: `cannot trigger ${dagId}`,
        body: {
          // Airflow's API requires the field; null means no logical date.
          logical_date: logicalDate ? await instantOf(session.client, dagId, logicalDate) : null,
          ...(options.conf === undefined ? {} : { conf: options.conf }),
          ...(options.runId === undefined ? {} : { dag_run_id: options.runId }),
          ...(options.note === undefined ? {} : { note: options.note }),
        },
        idempotent: true,
      });
      if (session.format === "table" && !options.wait) session.terminal.data(run.dag_run_id);
      session.note(`Run ${run.dag_run_id} of ${dagId} is ${run.state}.`);
      await printIfPaused(session, dagId);
      if (options.wait)
        session.exitCode = await watchRun(session, {
          dagId,
          runId: run.dag_run_id,
          timeoutMs: options.timeout,
        });
      if (session.format === "table") return;
      const what = `cannot show the run ${run.dag_run_id}`;
      const now = options.wait
        ? await session.client.get<DagRun>(path`/dags/${dagId}/dagRuns/${run.dag_run_id}`, { what })
        : run;
      await session.printObject(now, runFields(now));
    });

  for (const [name, isPaused, done] of [
    ["pause", true, "paused: no new runs are scheduled, and no run or task of it starts"],
    ["unpause", false, "active"],
  ] as const) {
    dags
      .command(name)
      .description(
        isPaused ? "pause DAGs: no new runs or tasks start" : "resume the schedules of paused DAGs",
      )
      .argument("<dag...>")
      .addHelpText("after", examples(`tradewind dags ${name} etl`, `tradewind dags ${name} etl report`))
      .action(async (dagIds) => {
        const changed: Dag[] = [];
        for (const dagId of dagIds) {
          changed.push(
            await session.client.patch<Dag>(path`/dags/${dagId}`, {
              what: `cannot ${name} ${dagId}`,
              body: { is_paused: isPaused },
            }),
          );
          if (session.format === "table") session.note(`DAG ${dagId} is ${done}.`);
        }
        if (session.format !== "table") await session.printDone(changed, "");
      });
  }

  dags
    .command("delete")
    .description("delete a DAG with all its runs; it is loaded again if a file still exports it")
    .argument("<dag>")
    .addHelpText(
      "after",
      examples("tradewind dags delete old_report", "# in a script", "tradewind dags delete old_report --yes"),
    )
    .action(async (dagId) => {
      await session.confirm(`Delete the DAG ${dagId} and all its runs?`);
      await session.client.delete(path`/dags/${dagId}`, { what: `cannot delete the DAG ${dagId}` });
      await session.printDone(
        { dag_id: dagId, deleted: true },
        `DAG ${dagId} deleted. It is loaded again if a file still exports it.`,
      );
    });

  dags
    .command("test")
    .description("run a DAG locally in one process, without server or database")
    .argument("<file-or-dag>", "DAG file, or id of a DAG in the DAG folder")
    .addOption(TEST_OPTIONS.dags)
    .option("--dag <id>", "the DAG to run if the file has several")
    .addOption(TEST_OPTIONS.conf)
    .addOption(TEST_OPTIONS.logicalDate)
    .addOption(TEST_OPTIONS.variable)
    .addOption(TEST_OPTIONS.connection)
    .addOption(TEST_OPTIONS.event)
    .addOption(TEST_OPTIONS.approval)
    .option(
      "--signal <key=json...>",
      "send a signal at the start of the run; key@10m=json: ten minutes later",
    )
    .option("--until <duration>", "close the run after this time if it does not end by itself", parseDuration)
    .option("--skip-waits", "skip retry delays and timed waits")
    .addHelpText(
      "after",
      examples(
        "tradewind dags test dags/orders.ts",
        "# with params and a variable, without waiting for retries",
        `tradewind dags test etl --conf '{"region":"eu"}' --skip-waits`,
        "tradewind dags test rates --variable rates_url=https://example.com",
        "# with the event of a trigger",
        `tradewind dags test expenses --event receipts='{"path":"a.csv"}'`,
        "# with answers to approvals",
        `tradewind dags test release --approval ok=approve --approval size='{"n":3}'`,
      ),
    )
    .action(async (what, { approval, variable, connection, event, signal, ...options }) => {
      const { testDag } = await import("../../dag-test/parent.ts");
      const given = surroundings({ approval, variable, connection, event, signal });
      session.exitCode = await testDag(session, { ...options, ...given, what });
    });

  return dags;
}

/** Without this note, a run of a paused DAG appears to hang. */
async function printIfPaused(session: Session, dagId: string): Promise<void> {
  const dag = await session.client.get<Dag>(path`/dags/${dagId}`, { what: `cannot show the DAG ${dagId}` });
  if (!dag.is_paused) return;
  const words = `DAG ${dagId} is paused. The run starts when you unpause it`;
  session.note(`${session.terminal.paintNote("yellow", words)}: \`tradewind dags unpause ${dagId}\``);
}
