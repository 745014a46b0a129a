import type { Command } from "@commander-js/extra-typings";
import { examples } from "../examples.ts";
import { dagGraph } from "../output/graph/dag-graph.ts";
import { printTaskTable } from "../output/graph/task-table.ts";
import type { Session } from "../session.ts";
import { readTasks } from "./dag-show.ts";

/** `dags graph`: the tasks and their edges, for a terminal, a document or a picture. */
export function addGraphCommand(dags: Command, session: Session): void {
  dags
    .command("graph")
    .description("draw the tasks of a DAG: on the terminal, or as Mermaid, Graphviz or SVG")
    .argument("<dag>")
    .addHelpText(
      "after",
      examples(
        "tradewind dags graph etl",
        "# a picture for the browser",
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
          return terminal.data((await import("../output/graph/mermaid.ts")).mermaidText(graph));
        case "dot":
          return terminal.data((await import("../output/graph/dot.ts")).dotText(graph));
        case "svg":
          return terminal.data(await (await import("../output/graph/svg.ts")).svgText(graph));
        default:
          if (session.format === "table") return printTaskTable(session, dagId, tasks);
          return session.printObject(graph, []);
      }
    });
}
