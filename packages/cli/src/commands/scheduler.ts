import { Command } from "@commander-js/extra-typings";
import { wholeNumber } from "../input/values.ts";
import type { Session } from "../session.ts";
import { serve } from "./service.ts";

export function command(session: Session) {
  return new Command("scheduler")
    .description("run a scheduler with its local executor; any number may share one database")
    .option(
      "--parallelism <n>",
      "how many tasks at once; 0 = a fresh process per task, no limit",
      wholeNumber(0),
    )
    .action(async (options) => {
      const { resolveConfig, startScheduler } = await import("@tradewind/engine");
      const config = resolveConfig({ ...options, home: session.options.home }, session.host.env);
      await serve(
        session,
        () => startScheduler(config),
        () => session.note("The scheduler is running."),
      );
    });
}
