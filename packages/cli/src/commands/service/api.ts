import { Command } from "@commander-js/extra-typings";
import { examples } from "../../examples.ts";
import { wholeNumber } from "../../input/values.ts";
import type { Session } from "../../session.ts";
import { serve } from "./service.ts";

export function command(session: Session) {
  return new Command("api")
    .description("run the API server")
    .addHelpText(
      "after",
      examples(
        "tradewind api --port 8080",
        "tradewind api --host 0.0.0.0 --public-url https://tradewind.example",
      ),
    )
    .option("--port <port>", "port to listen on (TRADEWIND_PORT; default: 8080)", wholeNumber(0, 65535))
    .option("--host <address>", "address to listen on (TRADEWIND_HOST; default: 127.0.0.1)")
    .option(
      "--public-url <url>",
      "public URL of the server, used in links and webhook URLs (TRADEWIND_PUBLIC_URL)",
    )
    .action(async (options) => {
      const { resolveConfig, startApi } = await import("@tradewind/engine");
      const config = resolveConfig({ ...options, home: session.options.home }, session.host.env);
      await serve(
        session,
        (signal) => startApi(config, signal),
        ({ url }) => session.note(`API server listening on ${url}. Token: ${config.home}/token`),
      );
    });
}
