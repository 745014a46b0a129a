/** `tradewind dags versions` and `tradewind dags diff`. */
import type { Command } from "@commander-js/extra-typings";
import { path } from "../../client/client.ts";
import type { DagVersion, VersionDiff } from "../../client/dag-versions.ts";
import type { DagDetails } from "../../client/resources.ts";
import { examples } from "../../examples.ts";
import { wholeNumber } from "../../input/values.ts";
import { printVersionDiff } from "../../output/version-diff-view.ts";
import { moment, relativeTime } from "../../output/when.ts";
import type { Session } from "../../session.ts";

export function addVersionCommands(dags: Command, session: Session): void {
  const { terminal } = session;

  dags
    .command("versions")
    .description("list the versions of a DAG, newest first")
    .argument("<dag>")
    .option("--limit <n>", "maximum number of rows; 0 = no limit", wholeNumber(0), 25)
    .addHelpText("after", examples("tradewind dags versions etl"))
    .action(async (dagId, { limit }) => {
      const what = `cannot list the versions of ${dagId}`;
      const listed = await session.client.list<DagVersion>({
        path: path`/dags/${dagId}/dagVersions`,
        key: "dag_versions",
        what,
        query: { order_by: "-version_number" },
        limit,
      });
      const dag = await session.client.get<DagDetails>(path`/dags/${dagId}/details`, { what });
      const current = dag.latest_dag_version?.version_number;
      await session.printList(
        listed,
        [
          { title: "VERSION", value: (it) => String(it.version_number), align: "right" },
          { title: "SINCE", value: (it) => moment(it.created_at) },
          { title: "", value: (it) => relativeTime(it.created_at), optional: true },
          { title: "CODE", value: (it) => (it.bundle_version ?? "").slice(0, 12), optional: true },
          {
            title: "",
            value: (it) => (it.version_number === current ? "current" : ""),
            paint: (_, cell) => terminal.paint("green", cell),
          },
        ],
        `The DAG ${dagId} has no versions.`,
      );
    });

  dags
    .command("diff")
    .description("compare two versions of a DAG: tasks, edges, options, source")
    .argument("<dag>")
    .argument("[from]", "version number (default: the version before TO)", wholeNumber(0))
    .argument("[to]", "version number (default: the current version)", wholeNumber(0))
    .option("--no-source", "leave out the diff of the source file")
    .addHelpText(
      "after",
      examples(
        "# compare the current version with the one before it",
        "tradewind dags diff etl",
        "tradewind dags diff etl 3 5",
      ),
    )
    .action(async (dagId, from, to, { source }) => {
      const diff = await session.client.get<VersionDiff>(path`/dags/${dagId}/dagVersions/diff`, {
        what: `cannot compare the versions of ${dagId}`,
        query: { from, to },
      });
      if (session.format === "table") return printVersionDiff(terminal, diff, { source });
      const { source_diff, ...rest } = diff;
      await session.printObject(source ? diff : rest, []);
    });
}
