import type { Command } from "@commander-js/extra-typings";
import { examples } from "../../examples.ts";
import { parsePairs } from "../../input/values.ts";
import type { Session } from "../../session.ts";
import { surroundings, TEST_OPTIONS } from "./test-options.ts";

/** `tasks test`: runs one task locally, with the outputs of its upstream tasks given. */
export function addTestCommand(tasks: Command, session: Session): void {
  tasks
    .command("test")
    .description("run one task locally, without server or database; print its output")
    .argument("<file-or-dag>", "DAG file, or id of a DAG in the DAG folder")
    .argument("<task>")
    .option("--input <name=json...>", "value of an input (or of ctx.output, by task id): JSON or @file")
    .option("--input-state <name=state...>", "state of an input's task: failed, skipped or upstream_failed")
    .addOption(TEST_OPTIONS.dags)
    .option("--dag <id>", "the DAG to use if the file has several")
    .addOption(TEST_OPTIONS.conf)
    .addOption(TEST_OPTIONS.logicalDate)
    .addOption(TEST_OPTIONS.variable)
    .addOption(TEST_OPTIONS.connection)
    .addOption(TEST_OPTIONS.event)
    .addOption(TEST_OPTIONS.approval)
    .option("--signal <key=json...>", "send a signal, as in `dags test`")
    .option("--skip-waits", "skip timed waits")
    .addHelpText(
      "after",
      examples(
        "tradewind tasks test dags/hello.ts who",
        `tradewind tasks test hello greet --input name='"world"'`,
        "# large input from a file, output to a file",
        "tradewind tasks test etl check --input orders=@orders.json > total.json",
        "# one item of a mapped task",
        `tradewind tasks test reports load --input item='"a.csv"'`,
        "# an input that did not succeed, for a task with another trigger rule",
        "tradewind tasks test report send --input-state rows=skipped",
      ),
    )
    .action(async (what, taskId, options) => {
      const { approval, connection, event, input = [], inputState = [], signal, variable, ...rest } = options;
      const { testTask } = await import("../../dag-test/parent.ts");
      session.exitCode = await testTask(session, {
        ...rest,
        ...surroundings({ approval, variable, connection, event, signal }),
        what,
        taskId,
        given: {
          values: parsePairs(input, "--input"),
          states: parsePairs(inputState, "--input-state"),
        },
      });
    });
}
