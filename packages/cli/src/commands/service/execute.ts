import { Command } from "@commander-js/extra-typings";
import { CliError, usageError } from "../../errors.ts";
import { examples } from "../../examples.ts";
import { EXIT, type ExitCode } from "../../exit-code.ts";
import type { Session } from "../../session.ts";
import { readCa } from "./ca-file.ts";

export function command(session: Session) {
  return new Command("execute")
    .description("run one task in a pod; the Kubernetes executor starts it with its address and token")
    .argument("<assignment>", "the id of the assignment")
    .addHelpText(
      "after",
      examples(
        "# in the pod, with TRADEWIND_URL and TRADEWIND_LAUNCH_TOKEN set",
        "tradewind execute 6f9619ff-8b86-4011-b42d-00c04fc964ff",
      ),
    )
    .option("--ca <file>", "PEM file of an additional CA for the API (TRADEWIND_CA)")
    .action(async (assignment, { ca }) => {
      const { env } = session.host;
      const { TRADEWIND_LAUNCH_TOKEN: token } = env;
      const caFile = ca ?? env.TRADEWIND_CA;
      const url = session.options.url ?? env.TRADEWIND_URL;
      // No library and no diagnostic report reads it later.
      delete env.TRADEWIND_LAUNCH_TOKEN;
      if (url === undefined || token === undefined)
        throw usageError(
          "the address of the API or the token of the assignment is missing.",
          "the Kubernetes executor sets TRADEWIND_URL and TRADEWIND_LAUNCH_TOKEN; to run tasks yourself, use `tradewind worker`",
        );
      const { PodWorkerError, runPodWorker } = await import("@tradewind/engine/pod-worker");
      const stop = new AbortController();
      const release = session.host.onSignal(["SIGINT", "SIGTERM"], () => stop.abort());
      try {
        const end = await runPodWorker({
          ...{ assignment, url, token, env, signal: stop.signal },
          ca: caFile ? readCa(caFile) : undefined,
        });
        if (end === "superseded") session.note("Nothing to do: the task is not to be run any more.");
        if (end === "handed back") session.exitCode = EXIT.interrupted;
      } catch (error) {
        if (!(error instanceof PodWorkerError)) throw error;
        throw new CliError("TW_CLI_POD_REJECTED", error.message, {
          exit: exitOf(error.status),
          remedy:
            "check TRADEWIND_EXECUTION_URL of the scheduler, and that its secret key is that of the API",
          cause: error,
        });
      } finally {
        release();
      }
    });
}

function exitOf(status: number): ExitCode {
  if (status === 401 || status === 403) return EXIT.auth;
  return status === 409 ? EXIT.conflict : EXIT.server;
}
