import type { Command } from "@commander-js/extra-typings";
import { CliError } from "../../errors.ts";
import { examples } from "../../examples.ts";
import { EXIT } from "../../exit-code.ts";
import { dagGraph } from "../../output/graph/dag-graph.ts";
import { printTaskTable } from "../../output/graph/task-table.ts";
import type { Session } from "../../session.ts";
import { readTasks } from "./dag-show.ts";

/** Layout takes ten times as long for three times as many tasks. */
const MOST_DRAWN = 500;

/** `dags graph`: the tasks and their edges, for a terminal, a document or an image. */
export function addGraphCommand(dags: Command, session: Session): void {
  dags
    .command("graph")
    .description("draw the graph of a DAG: on the terminal, or as Mermaid, Graphviz or SVG")
    .argument("<dag>")
    .addHelpText(
      "after",
      examples(
        "tradewind dags graph etl",
        "# an image for the browser",
        "tradewind dags graph etl -o svg > etl.svg",
        "# for a Markdown file or a wiki",
        "tradewind dags graph etl -o mermaid",
        "tradewind dags graph etl -o dot | dot -Tpdf > etl.pdf",
      ),
    )
    .action(async (dagId) => {
      const tasks = await readTasks(session, dagId, `cannot draw the DAG ${dagId}`);
      const graph = dagGraph(dagId, tasks);
      const { terminal } = session;
      switch (session.options.output) {
        case "mermaid":
          return terminal.data((await import("../../output/graph/mermaid.ts")).mermaidText(graph));
        case "dot":
          return terminal.data((await import("../../output/graph/dot.ts")).dotText(graph));
        case "svg":
          if (tasks.length > MOST_DRAWN) throw tooLarge(dagId, tasks.length);
          return terminal.data(await (await import("../../output/graph/svg.ts")).svgText(graph));
        default:
          if (session.format === "table") return printTaskTable(session, dagId, tasks);
          return session.printObject(graph, []);
      }
    });
}

function tooLarge(dagId: string, tasks: number): CliError {
  return new CliError(
    "TW_CLI_GRAPH_TOO_LARGE",
    `the DAG ${dagId} has ${tasks} tasks: an image is limited to ${MOST_DRAWN}.`,
    {
      exit: EXIT.failed,
      remedy: `use Graphviz: \`tradewind dags graph ${dagId} -o dot | dot -Tsvg\``,
    },
  );
}
