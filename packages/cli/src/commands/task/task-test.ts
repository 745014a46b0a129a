import type { Command } from "@commander-js/extra-typings";
import { examples } from "../../examples.ts";
import { parseConf, parseInstant, parsePairs } from "../../input/values.ts";
import type { Session } from "../../session.ts";
import { surroundings } from "./test-options.ts";

/** `tasks test`: one task, here and now, with the outputs of those before it given. */
export function addTestCommand(tasks: Command, session: Session): void {
  tasks
    .command("test")
    .description("run one task here, without server or database, and print its log and its output")
    .argument("<file-or-dag>", "a DAG file, or the id of a DAG in the DAG folder")
    .argument("<task>")
    .option("--input <name=json...>", "an input's value: JSON or @file; a task's id: what ctx.output finds")
    .option("--input-state <name=state...>", "an input whose task failed, was skipped or is upstream_failed")
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
    .option("--signal <key=json...>", "a signal from outside, as for dags test")
    .option("--skip-waits", "jump over waits for a time")
    .addHelpText(
      "after",
      examples(
        "tradewind tasks test dags/hello.ts who",
        `tradewind tasks test hello greet --input name='"world"'`,
        "# a large input from a file, the output to another",
        "tradewind tasks test etl check --input orders=@orders.json > total.json",
        "# one item of a mapped task",
        `tradewind tasks test reports load --input item='"a.csv"'`,
        "# an input that did not succeed, for a task with another rule",
        "tradewind tasks test report send --input-state rows=skipped",
      ),
    )
    .action(async (what, taskId, options) => {
      const { connection, event, input = [], inputState = [], signal, variable, ...rest } = options;
      const { testTask } = await import("../../dag-test/parent.ts");
      session.exitCode = await testTask(session, {
        ...rest,
        ...surroundings({ variable, connection, event, signal }),
        what,
        taskId,
        given: {
          values: parsePairs(input, "--input"),
          states: parsePairs(inputState, "--input-state"),
        },
      });
    });
}
