/** `connections test` connects from this machine: no token can make the server open connections. */
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
    .description("test a connection from this machine; exit 0 on success, 1 on failure")
    .addHelpText(
      "after",
      `\nPostgreSQL and Redis: log in and run a query. http and https: send one GET. Other types: connect\nwithout credentials. Secrets are read from the database: run this where the home of a service is.\n${examples(
        "tradewind connections test warehouse",
        "tradewind connections test warehouse --timeout 3s --json",
      )}`,
    )
    .argument("<id>")
    .option("--timeout <duration>", "time limit (default: 10s)", parseDuration)
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
          tested === "credentials" ? "accepts the credentials" : "is reachable; credentials not tested";
        await session.printDone(
          { connection_id: id, tested, address, answer, seconds },
          `Connection ${id}: ${address} ${known} (${answer}).`,
        );
      });
    });
}

function noConnection(id: string): CliError {
  return new CliError("NOT_FOUND", `cannot test the connection ${id}: connection "${id}" does not exist.`, {
    exit: EXIT.notFound,
    remedy: "`tradewind connections list` lists the connections",
  });
}
