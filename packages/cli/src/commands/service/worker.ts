import { availableParallelism } from "node:os";
import { Command, InvalidArgumentError } from "@commander-js/extra-typings";
import { HttpError } from "../../client/http-error.ts";
import { findTarget } from "../../client/target.ts";
import { CliError, usageError } from "../../errors.ts";
import { examples } from "../../examples.ts";
import { EXIT } from "../../exit-code.ts";
import { wholeNumber } from "../../input/values.ts";
import type { Session } from "../../session.ts";
import { readCa } from "./ca-file.ts";
import { serve } from "./service.ts";

export function command(session: Session) {
  return new Command("worker")
    .description("run a worker: tasks of the queue executor, on any machine; run as many as you need")
    .addHelpText(
      "after",
      examples(
        "# create a token on a machine that reaches the API",
        "tradewind tokens create gpu-worker --role worker",
        "# with TRADEWIND_URL, TRADEWIND_TOKEN and REDIS_URL set",
        "tradewind worker --queues default,gpu --concurrency 8",
      ),
    )
    .option("--queues <names>", "comma-separated queues (default: default)", names)
    .option(
      "--concurrency <n>",
      "maximum number of concurrent tasks (default: 4 per core)",
      wholeNumber(1, 10_000),
    )
    .option("--name <name>", "its name in lists (default: host name and process id)")
    .option("--labels <pairs>", "comma-separated key=value pairs, shown in lists", labels)
    .option("--redis-url <url>", "the Redis of the queues (REDIS_URL)")
    .option("--ca <file>", "PEM file of an additional CA for the API (TRADEWIND_CA)")
    .option(
      "--drain <duration>",
      "time for running tasks to finish after SIGTERM (TRADEWIND_DRAIN; default: 20s)",
    )
    .action(async ({ ca, concurrency, drain, labels = {}, name, queues = ["default"], redisUrl }) => {
      const { ExecutionError, resolveConfig, startWorker } = await import("@tradewind/engine");
      const { env } = session.host;
      const config = resolveConfig({ home: session.options.home, drainMs: drain, redisUrl }, env);
      const { token, url } = findTarget(session.options, env);
      if (token === undefined)
        throw new CliError("TW_CLI_NO_TOKEN", "no token found for the worker.", {
          exit: EXIT.auth,
          remedy: "create one with `tradewind tokens create <name> --role worker`, and set TRADEWIND_TOKEN",
        });
      if (config.redisUrl === undefined)
        throw usageError("a worker needs the Redis of the queues.", "set REDIS_URL, or give --redis-url");
      const caFile = ca ?? env.TRADEWIND_CA;
      const start = {
        ...{ url, token, redisUrl: config.redisUrl, queues, name, labels },
        slots: concurrency ?? Math.max(4, 4 * availableParallelism()),
        ca: caFile ? readCa(caFile) : undefined,
      };
      await serve(
        session,
        (signal) =>
          startWorker(config, { ...start, signal }).catch((error: unknown) => {
            if (!(error instanceof ExecutionError)) throw error;
            const body = { code: error.code, detail: error.message };
            throw new HttpError(error.status, `${url} does not accept this worker`, body);
          }),
        () => session.note(`The worker is running: ${start.slots} slots for ${queues.join(", ")}.`),
      );
    });
}

function names(text: string): readonly string[] {
  const found = [...new Set(text.split(",").map((name) => name.trim()))];
  if (found.includes(""))
    throw new InvalidArgumentError("Give comma-separated names, e.g. --queues default,gpu.");
  return found;
}

function labels(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    text.split(",").map((pair) => {
      const [, key, value] = /^\s*([^=\s]+)=(.*?)\s*$/.exec(pair) ?? [];
      if (key === undefined || value === undefined)
        throw new InvalidArgumentError("Give comma-separated pairs, e.g. --labels zone=a,gpu=a100.");
      return [key, value];
    }),
  );
}
