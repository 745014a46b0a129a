/** `connections test`: from this machine, which is why no token can make the server connect anywhere. */
import type { Command } from "@commander-js/extra-typings";
import { CliError } from "../../errors.ts";
import { examples } from "../../examples.ts";
import { EXIT } from "../../exit-code.ts";
import { parseDuration } from "../../input/values.ts";
import type { Session } from "../../session.ts";
import { withSecrets } from "../../settings/secrets.ts";

const TIMEOUT_MS = 10_000;

export function addTestCommand(connections: Command, session: Session): void {
  connections
    .command("test")
    .description(
      "connect to the server of a connection, from this machine, with its credentials: exit 0 when it answers, 1 when not",
    )
    .addHelpText(
      "after",
      `\nPostgreSQL and Redis: log in and ask. http and https: one GET. Other types: connect, without\ncredentials. The secrets are read from the database: run it where the home of a service is.\n${examples(
        "tradewind connections test warehouse",
        "tradewind connections test warehouse --timeout 3s --json",
      )}`,
    )
    .argument("<id>")
    .option("--timeout <duration>", "how long it may take; 10s when not given", parseDuration)
    .action(async (id, { timeout = TIMEOUT_MS }) => {
      await session.interruptible(async (signal) => {
        const since = performance.now();
        const test = await withSecrets(session, async ({ engine, secrets }) => {
          const facts = await secrets.connection(id);
          if (facts === undefined) throw noConnection(id);
          session.terminal.status(`Connecting to ${facts.host ?? id}…`);
          return engine.testConnection(facts, { signal, timeoutMs: timeout });
        }).catch((error: unknown) => {
          if (signal.aborted) return null;
          throw error;
        });
        if (test === null) {
          session.exitCode = EXIT.interrupted;
          return;
        }
        const { address, answer, tested } = test;
        const seconds = Math.round(performance.now() - since) / 1000;
        const known =
          tested === "credentials"
            ? "accepts the credentials"
            : "can be reached; the credentials were not tested";
        await session.printDone(
          { connection_id: id, tested, address, answer, seconds },
          `Connection ${id}: ${address} ${known} (${answer}).`,
        );
      });
    });
}

function noConnection(id: string): CliError {
  return new CliError("NOT_FOUND", `cannot test the connection ${id}: there is no connection "${id}".`, {
    exit: EXIT.notFound,
    remedy: "`tradewind connections list` shows those there are",
  });
}
