import type { Command } from "@commander-js/extra-typings";
import type { Dag } from "../../client/resources.ts";
import { examples } from "../../examples.ts";
import { wholeNumber } from "../../input/values.ts";
import { dagStatus, lastRunText, scheduleText } from "../../output/dag-status.ts";
import { paintState } from "../../output/state.ts";
import { type Column, truncate } from "../../output/table.ts";
import { dueTime } from "../../output/when.ts";
import type { Session } from "../../session.ts";
import { noteImportErrors } from "./dag-errors.ts";

const SCHEDULE_WIDTH = 32;

/** `dags list`: one request per page of DAGs, whatever is shown of them. */
export function addListCommand(dags: Command, session: Session): void {
  dags
    .command("list")
    .description("list the DAGs: schedule, latest run, next run")
    .option("--tag <tag...>", "only with these tags")
    .option("--paused", "only the paused ones")
    .option("--all", "also removed ones: no file exports them any more, their runs are kept")
    .option("--limit <n>", "how many at most; 0 = all", wholeNumber(0), 50)
    .addHelpText(
      "after",
      examples(
        "tradewind dags list",
        "tradewind dags list --tag daily --tz Europe/Berlin",
        "# the DAGs whose latest run has failed",
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
        tag || paused
          ? "There is no such DAG."
          : "There are no DAGs yet: put a file that exports one into the DAG folder.";
      await session.printList(listed, columns(session), empty);
      await noteImportErrors(session);
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
    // Its zone is worth more than tags and files, which are left out before it is cut.
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
    },
    {
      title: "NEXT RUN",
      value: (dag) => (dagStatus(dag) === "active" ? dueTime(dag.next_dagrun_run_after) : "-"),
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
