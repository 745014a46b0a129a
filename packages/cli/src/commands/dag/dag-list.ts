import type { Command } from "@commander-js/extra-typings";
import type { Dag } from "../../client/resources.ts";
import { examples } from "../../examples.ts";
import { wholeNumber } from "../../input/values.ts";
import { dagStatus, lastRunText, scheduleText } from "../../output/dag-status.ts";
import { paintState } from "../../output/state.ts";
import { type Column, truncate } from "../../output/table.ts";
import { dueTime } from "../../output/when.ts";
import type { Session } from "../../session.ts";
import { printImportErrors } from "./dag-errors.ts";

const SCHEDULE_WIDTH = 32;

/** `dags list`: one request per page of DAGs. */
export function addListCommand(dags: Command, session: Session): void {
  dags
    .command("list")
    .description("list DAGs with schedule, latest run and next run")
    .option("--tag <tag...>", "only DAGs with these tags")
    .option("--paused", "only paused DAGs")
    .option("--all", "include removed DAGs: no file exports them, their runs are kept")
    .option("--limit <n>", "maximum number of rows; 0 = no limit", wholeNumber(0), 50)
    .addHelpText(
      "after",
      examples(
        "tradewind dags list",
        "tradewind dags list --tag daily --tz Europe/Berlin",
        "# DAGs whose latest run failed",
        `tradewind dags list --json | jq '.[] | select(.last_run.state == "failed")'`,
      ),
    )
    .action(async ({ all, limit, paused, tag }) => {
      const listed = await session.client.list<Dag>({
        path: "/dags",
        key: "dags",
        what: "cannot list the DAGs",
        query: { tags: tag, paused, exclude_stale: all ? false : undefined },
        limit,
      });
      const empty =
        tag || paused ? "No DAGs match." : "No DAGs yet. Put a file that exports one into the DAG folder.";
      await session.printList(listed, columns(session), empty);
      await printImportErrors(session);
    });
}

function columns({ terminal }: Session): readonly Column<Dag>[] {
  return [
    { title: "DAG", value: (dag) => dag.dag_id },
    {
      title: "STATUS",
      value: dagStatus,
      paint: (dag, cell) => (dagStatus(dag) === "active" ? cell : terminal.paint("yellow", cell)),
    },
    // The time zone matters more than tags and files: they are left out before it is cut.
    {
      title: "SCHEDULE",
      value: (dag) => {
        const text = scheduleText(dag) ?? "-";
        return terminal.width === undefined ? text : truncate(text, SCHEDULE_WIDTH);
      },
    },
    {
      title: "LAST RUN",
      value: (dag) => lastRunText(dag) ?? "-",
      paint: (dag, cell) => paintState(terminal, dag.last_run?.state ?? null, cell),
      optional: true,
    },
    {
      title: "NEXT RUN",
      value: (dag) => (dagStatus(dag) === "active" ? dueTime(dag.next_dagrun_run_after) : "-"),
      optional: true,
    },
    {
      title: "TAGS",
      value: (dag) => dag.tags.map((tag) => tag.name).join(", "),
      flexible: true,
      optional: true,
    },
    { title: "FILE", value: (dag) => dag.relative_fileloc ?? dag.fileloc, flexible: true, optional: true },
  ];
}
