import { Command, InvalidArgumentError } from "@commander-js/extra-typings";
import { examples } from "../../examples.ts";
import { wholeNumber } from "../../input/values.ts";
import type { Session } from "../../session.ts";
import { serve } from "./service.ts";

export function command(session: Session) {
  return new Command("scheduler")
    .description("run a scheduler with its local executor; any number may share one database")
    .addHelpText(
      "after",
      examples(
        "tradewind scheduler --parallelism 16",
        "# serve two DAGs, exit after ten runs",
        "tradewind scheduler --dags etl,report --runs 10",
      ),
    )
    .option(
      "--parallelism <n>",
      "how many tasks at once; 0 = a fresh process per task, no limit",
      wholeNumber(0),
    )
    .option("--dags <ids>", "only runs of these DAGs: ids with commas; may be repeated", dagIds)
    .option("--runs <n>", "exit with code 0 after so many of its runs have ended", wholeNumber(1))
    .option(
      "--streaming-slots <n>",
      "slots for streaming tasks alone, in addition (TRADEWIND_STREAMING_SLOTS, else 0)",
      wholeNumber(0),
    )
    .option(
      "--drain <duration>",
      "how long running tasks may go on after SIGTERM (TRADEWIND_DRAIN, else 20s)",
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

/** A folder is the likeliest mistake: "--dags" of the DAG processor names one. */
function dagIds(text: string, before: readonly string[] = []): readonly string[] {
  const ids = text.split(",").map((id) => id.trim());
  const wrong = ids.find((id) => !/^(?!\.+$)[A-Za-z0-9_.-]{1,250}$/.test(id));
  if (wrong !== undefined)
    throw new InvalidArgumentError(
      `${JSON.stringify(wrong)} is not a DAG id. Write ids with commas, e.g. --dags sales,billing; a scheduler has no DAG folder.`,
    );
  return [...new Set([...before, ...ids])];
}
