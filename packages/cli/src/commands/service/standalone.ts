import { mkdir } from "node:fs/promises";
import { Command } from "@commander-js/extra-typings";
import { Client } from "../../client/client.ts";
import { examples } from "../../examples.ts";
import { wholeNumber } from "../../input/values.ts";
import { showActivity } from "../../output/activity.ts";
import type { Session } from "../../session.ts";
import { serve } from "./service.ts";

export function command(session: Session) {
  return new Command("standalone")
    .description(
      "run everything on this machine: database, DAG processor, scheduler with local executor, triggerer, API server",
    )
    .addHelpText(
      "after",
      examples("tradewind standalone", "tradewind standalone --dags pipelines --port 8095"),
    )
    .option("--dags <folder>", "the DAG folder (TRADEWIND_DAGS, else dags, which is created if needed)")
    .option(
      "--port <port>",
      "where the API listens; 0 = any free port (TRADEWIND_PORT, else 8080)",
      wholeNumber(0, 65535),
    )
    .option("--host <address>", "where the API listens (TRADEWIND_HOST, else 127.0.0.1)")
    .option("--public-url <url>", "how others reach the API, for webhook URLs (TRADEWIND_PUBLIC_URL)")
    .option(
      "--parallelism <n>",
      "how many tasks at once; 0 = a fresh process per task, no limit",
      wholeNumber(0),
    )
    .option(
      "--streaming-slots <n>",
      "slots for streaming tasks alone, in addition (TRADEWIND_STREAMING_SLOTS, else 0)",
      wholeNumber(0),
    )
    .option("--drain <duration>", "how long running tasks may go on after SIGTERM (TRADEWIND_DRAIN, else 5s)")
    .option(
      "--signals-port <port>",
      "serve signals over gRPC there, too (TRADEWIND_SIGNALS_PORT, else not)",
      wholeNumber(0, 65535),
    )
    .option("--signals-tls-cert <file>", "serve them with TLS (TRADEWIND_SIGNALS_TLS_CERT, else without)")
    .option("--signals-tls-key <file>", "the key of that certificate (TRADEWIND_SIGNALS_TLS_KEY)")
    .option(
      "--signals-tls-ca <file>",
      "clients need a certificate signed by this one (TRADEWIND_SIGNALS_TLS_CA)",
    )
    .action(async (options) => {
      const { terminal } = session;
      const onStep = (step: string) =>
        terminal.liveStatus ? terminal.status(`${step}…`) : terminal.note(`${step}…`);
      // Before the engine is imported, which takes most of a second.
      onStep("Starting Tradewind");
      const { resolveConfig, startStandalone } = await import("@tradewind/engine");
      const config = resolveConfig(
        { ...options, drainMs: options.drain, home: session.options.home },
        session.host.env,
      );
      if (options.dags === undefined && !session.host.env.TRADEWIND_DAGS)
        await mkdir(config.dags, { recursive: true });
      const since = new Date();
      await serve(
        session,
        (signal) => startStandalone(config, { signal, onStep }),
        ({ url, token, watch }, signal) => {
          const line = (name: string, value: string) =>
            terminal.note(`  ${terminal.paintNote("dim", name.padEnd(6))} ${value}`);
          terminal.note(`${terminal.paintNote("bold", "Tradewind is running.")} Ctrl-C stops it.`);
          line("url", terminal.paintNote("cyan", url));
          line("home", config.home);
          line("token", `${config.home}/token`);
          line("dags", config.dags);
          const client = new Client({ url, token, pid: undefined });
          return showActivity(session, client, { dags: config.dags, since, watch, signal });
        },
      );
    });
}
