import { Command, InvalidArgumentError } from "@commander-js/extra-typings";
import { examples } from "../../examples.ts";
import { wholeNumber } from "../../input/values.ts";
import type { Session } from "../../session.ts";
import { serve } from "./service.ts";
import { PARALLELISM, STREAMING_SLOTS } from "./slot-options.ts";

export function command(session: Session) {
  return new Command("scheduler")
    .description("run a scheduler with its local executor; run as many as you need")
    .addHelpText(
      "after",
      examples(
        "tradewind scheduler --parallelism 16",
        "# serve two DAGs and exit after ten runs",
        "tradewind scheduler --dags etl,report --runs 10",
      ),
    )
    .addOption(PARALLELISM)
    .option("--dags <ids>", "only runs of these DAGs (comma-separated ids; repeatable)", dagIds)
    .option("--runs <n>", "exit with code 0 after this many runs have ended", wholeNumber(1))
    .addOption(STREAMING_SLOTS)
    .option(
      "--drain <duration>",
      "time for running tasks to finish after SIGTERM (TRADEWIND_DRAIN; default: 20s)",
    )
    .action(async ({ dags, drain, parallelism, runs, streamingSlots }) => {
      const { resolveConfig, startScheduler } = await import("@tradewind/engine");
      const config = resolveConfig(
        { parallelism, streamingSlots, drainMs: drain, home: session.options.home },
        session.host.env,
      );
      const scope = [
        ...(dags === undefined ? [] : [`DAGs ${dags.join(", ")}`]),
        ...(runs === undefined ? [] : [`until ${runs === 1 ? "a run has" : `${runs} runs have`} ended`]),
      ];
      await serve(
        session,
        (signal) => startScheduler(config, signal, { dags, runs }),
        () => session.note(`The scheduler is running${scope.length > 0 ? `: ${scope.join(", ")}` : ""}.`),
      );
    });
}

/** A folder is the most likely mistake, because "--dags" of the DAG processor takes one. */
function dagIds(text: string, before: readonly string[] = []): readonly string[] {
  const ids = text.split(",").map((id) => id.trim());
  const wrong = ids.find((id) => !/^(?!\.+$)[A-Za-z0-9_.-]{1,250}$/.test(id));
  if (wrong !== undefined)
    throw new InvalidArgumentError(
      `${JSON.stringify(wrong)} is not a DAG id. Give comma-separated ids, e.g. --dags sales,billing; a scheduler has no DAG folder.`,
    );
  return [...new Set([...before, ...ids])];
}
