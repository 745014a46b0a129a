import { Command } from "@commander-js/extra-typings";
import { examples } from "../../examples.ts";
import type { Session } from "../../session.ts";
import { serve } from "./service.ts";

export function command(session: Session) {
  return new Command("dag-processor")
    .description("run the DAG processor: load DAG files into the database and watch them")
    .addHelpText("after", examples("tradewind dag-processor --dags pipelines"))
    .option("--dags <folder>", "DAG folder (TRADEWIND_DAGS; default: dags)")
    .action(async (options) => {
      const { resolveConfig, startDagProcessor } = await import("@tradewind/engine");
      const config = resolveConfig({ ...options, home: session.options.home }, session.host.env);
      await serve(
        session,
        (signal) => startDagProcessor(config, signal),
        () => session.note("The DAG processor is running."),
      );
    });
}
