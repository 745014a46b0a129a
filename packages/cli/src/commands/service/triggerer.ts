import { Command } from "@commander-js/extra-typings";
import { examples } from "../../examples.ts";
import { wholeNumber } from "../../input/values.ts";
import type { Session } from "../../session.ts";
import { serve } from "./service.ts";

export function command(session: Session) {
  return new Command("triggerer")
    .description("run a triggerer: the triggers of deferred tasks; run as many as you need")
    .addHelpText(
      "after",
      examples("tradewind triggerer", "tradewind triggerer --queues default,slow --capacity 1000"),
    )
    .option(
      "--capacity <n>",
      "maximum number of triggers (TRADEWIND_TRIGGERER_CAPACITY; default: 10000)",
      wholeNumber(1, 1_000_000),
    )
    .option(
      "--memory-mb <n>",
      "memory limit of a trigger process (TRADEWIND_TRIGGERER_MEMORY_MB; default: 2048)",
      wholeNumber(128, 1_000_000),
    )
    .option("--queues <names>", "comma-separated queues (TRADEWIND_TRIGGERER_QUEUES; default: default)")
    .action(async ({ capacity, memoryMb, queues }) => {
      const { resolveConfig, startTriggerer } = await import("@tradewind/engine");
      const flags = {
        ...{ triggererCapacity: capacity, triggererMemoryMb: memoryMb, triggererQueues: queues },
        home: session.options.home,
      };
      const config = resolveConfig(flags, session.host.env);
      await serve(
        session,
        (signal) => startTriggerer(config, signal),
        () => session.note("The triggerer is running."),
      );
    });
}
