import { Command } from "@commander-js/extra-typings";
import { path } from "../../client/client.ts";
import { instantOf } from "../../client/find-run.ts";
import type { Dag, DagRun } from "../../client/resources.ts";
import { examples } from "../../examples.ts";
import { parseDate } from "../../input/dates.ts";
import { parseConf, parseDuration, parseInstant } from "../../input/values.ts";
import { runFields, watchRun } from "../../output/run-view.ts";
import type { Session } from "../../session.ts";
import { surroundings } from "../task/test-options.ts";
import { addErrorsCommand } from "./dag-errors.ts";
import { addGraphCommand } from "./dag-graph.ts";
import { addListCommand } from "./dag-list.ts";
import { addShowCommand } from "./dag-show.ts";
import { addVersionCommands } from "./dag-versions.ts";

export function command(session: Session) {
  const dags = new Command("dags")
    .description("list, show, draw, compare, trigger, pause and test DAGs")
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
    .option("--conf <json>", "the run's params: a JSON object, @file, or @- for standard input", parseConf)
    .option(
      "--logical-date <date>",
      "the moment the run stands for: 2026-11-15 or 2026-11-15T02:00, in the DAG's time zone",
      parseDate,
    )
    .option("--run-id <id>", "the run's own id; a second run with it is refused")
    .option("--note <text>", "a note on the run")
    .option("--wait", "watch the run until it has ended; exit 1 when it failed")
    .option("--timeout <duration>", "with --wait: stop watching after this time, e.g. 15m", parseDuration)
    .addHelpText(
      "after",
      examples(
        "tradewind dags trigger etl",
        `tradewind dags trigger etl --conf '{"region":"eu"}'`,
        "tradewind dags trigger etl --logical-date 2026-11-15",
        "# in a script: exit 1 and the first failure when the run fails",
        "tradewind dags trigger etl --wait --timeout 30m",
      ),
    )
    .action(async (dagId, options) => {
      const { logicalDate } = options;
      const run = await session.client.post<DagRun>(path`/dags/${dagId}/dagRuns`, {
        what: `cannot trigger ${dagId}`,
        body: {
          // Airflow's API wants the field, and takes null for "none".
          logical_date: logicalDate ? await instantOf(session.client, dagId, logicalDate) : null,
          ...(options.conf === undefined ? {} : { conf: options.conf }),
          ...(options.runId === undefined ? {} : { dag_run_id: options.runId }),
          ...(options.note === undefined ? {} : { note: options.note }),
        },
        idempotent: true,
      });
      if (session.format === "table" && !options.wait) session.terminal.data(run.dag_run_id);
      session.note(`Run ${run.dag_run_id} of ${dagId} is ${run.state}.`);
      await noteIfPaused(session, dagId);
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
    ["pause", true, "paused: its schedule makes no new runs, and no run or task of it starts"],
    ["unpause", false, "active"],
  ] as const) {
    dags
      .command(name)
      .description(isPaused ? "stop the schedule of a DAG" : "let the schedule of a DAG go on")
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
    .description("delete a DAG with all its runs; its file stays, and as long as it stays the DAG comes back")
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
        `DAG ${dagId} deleted. While a file still exports it, it comes back.`,
      );
    });

  dags
    .command("test")
    .description("run one DAG here, in one process, without server or database, and print its progress")
    .argument("<file-or-dag>", "a DAG file, or the id of a DAG in the DAG folder")
    .option("--dags <folder>", "the DAG folder (TRADEWIND_DAGS, else dags)")
    .option("--dag <id>", "which DAG, when the file holds several")
    .option("--conf <json>", "the run's params: a JSON object, @file, or @- for standard input", parseConf)
    .option("--logical-date <date>", "the moment the run stands for", parseInstant)
    .option("--variable <key=value...>", "what ctx.variable reads")
    .option(
      "--connection <id=uri...>",
      "what ctx.connection reads: id=type://login:password@host:port/schema",
    )
    .option("--event <key=json...>", "what a trigger fires with, by its id, by task, or by task/step")
    .option(
      "--signal <key=json...>",
      "a signal from outside, when the run begins; key@10m=json: ten minutes later",
    )
    .option("--until <duration>", "close a run that does not end by itself after that time", parseDuration)
    .option("--skip-waits", "jump over retry delays and waits for a time")
    .addHelpText(
      "after",
      examples(
        "tradewind dags test dags/orders.ts",
        "# with params and a variable, without waiting for retries",
        `tradewind dags test etl --conf '{"region":"eu"}' --skip-waits`,
        "tradewind dags test rates --variable rates_url=https://example.com",
        "# what a trigger fires with",
        `tradewind dags test expenses --event receipts='{"path":"a.csv"}'`,
      ),
    )
    .action(async (what, { variable, connection, event, signal, ...options }) => {
      const { testDag } = await import("../../dag-test/parent.ts");
      const given = surroundings({ variable, connection, event, signal });
      session.exitCode = await testDag(session, { ...options, ...given, what });
    });

  return dags;
}

/** Without this note, a run of a paused DAG looks as if it hangs. */
async function noteIfPaused(session: Session, dagId: string): Promise<void> {
  const dag = await session.client.get<Dag>(path`/dags/${dagId}`, { what: `cannot show the DAG ${dagId}` });
  if (!dag.is_paused) return;
  const words = `The DAG ${dagId} is paused: the run waits until it is unpaused`;
  session.note(`${session.terminal.paintNote("yellow", words)}: \`tradewind dags unpause ${dagId}\``);
}
