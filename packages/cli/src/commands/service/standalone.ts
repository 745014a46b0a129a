import { mkdir } from "node:fs/promises";
import { Command } from "@commander-js/extra-typings";
import { Client } from "../../client/client.ts";
import { createSignInLink } from "../../client/sign-in-link.ts";
import { examples } from "../../examples.ts";
import { wholeNumber } from "../../input/values.ts";
import { showActivity } from "../../output/activity.ts";
import type { Session } from "../../session.ts";
import { serve } from "./service.ts";
import { PARALLELISM, STREAMING_SLOTS } from "./slot-options.ts";

export function command(session: Session) {
  return new Command("standalone")
    .description("run all services in one process, with an embedded database")
    .addHelpText(
      "after",
      examples("tradewind standalone", "tradewind standalone --dags pipelines --port 8095"),
    )
    .option("--dags <folder>", "DAG folder, created if missing (TRADEWIND_DAGS; default: dags)")
    .option(
      "--port <port>",
      "port of the API; 0 = any free port (TRADEWIND_PORT; default: 8080)",
      wholeNumber(0, 65535),
    )
    .option("--host <address>", "address of the API (TRADEWIND_HOST; default: 127.0.0.1)")
    .option(
      "--public-url <url>",
      "public URL of the server, used in links and webhook URLs (TRADEWIND_PUBLIC_URL)",
    )
    .addOption(PARALLELISM)
    .addOption(STREAMING_SLOTS)
    .option(
      "--drain <duration>",
      "time for running tasks to finish after SIGTERM (TRADEWIND_DRAIN; default: 5s)",
    )
    .option(
      "--signals-port <port>",
      "also serve signals over gRPC on this port (TRADEWIND_SIGNALS_PORT)",
      wholeNumber(0, 65535),
    )
    .option(
      "--signals-tls-cert <file>",
      "TLS certificate of the gRPC server, PEM (TRADEWIND_SIGNALS_TLS_CERT)",
    )
    .option("--signals-tls-key <file>", "private key of that certificate (TRADEWIND_SIGNALS_TLS_KEY)")
    .option(
      "--signals-tls-ca <file>",
      "require client certificates signed by this CA (TRADEWIND_SIGNALS_TLS_CA)",
    )
    .action(async (options) => {
      const { terminal } = session;
      const onStep = (step: string) =>
        terminal.liveStatus ? terminal.status(`${step}…`) : terminal.note(`${step}…`);
      // Before the import of the engine, which takes most of a second.
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
        async ({ url, token, watch }, signal) => {
          const line = (name: string, value: string) =>
            terminal.note(`  ${terminal.paintNote("dim", name.padEnd(6))} ${value}`);
          terminal.note(`${terminal.paintNote("bold", "Tradewind is running.")} Press Ctrl-C to stop.`);
          const client = new Client({ url, token, pid: undefined });
          // Machines collect JSON logs, which should not contain a link that signs someone in.
          const link = config.logFormat === "json" ? url : (await createSignInLink(client)).url;
          line("url", terminal.paintNote("cyan", link));
          line("home", config.home);
          line("token", `${config.home}/token`);
          line("dags", config.dags);
          return showActivity(session, client, { dags: config.dags, since, watch, signal });
        },
      );
    });
}
