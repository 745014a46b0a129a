import type { Config } from "@tradewind/engine";
import { Client } from "../client/client.ts";
import type { Health, ImportProblem, Pool } from "../client/resources.ts";
import { findTarget, processAlive, readStandalone, type Target } from "../client/target.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { withCode } from "../output/error.ts";
import { relativeTime } from "../output/when.ts";
import type { Session } from "../session.ts";
import type { Check } from "./checks.ts";
import { checkExecutors } from "./executor-checks.ts";
import { checkPort } from "./port-check.ts";
import { checkSchedulers, checkServed } from "./scheduler-checks.ts";
import { checkTriggers } from "./triggerer-checks.ts";

/**
 * The API server and the services that it reports: scheduler, DAG processor, broken files, pools.
 * @param config null: unreadable, so the port of the server is unknown.
 */
export async function* checkServer(session: Session, config: Config | null): AsyncGenerator<Check> {
  const target = targetOf(session);
  if (target === undefined) {
    yield {
      name: "server",
      result: "warn",
      says: `no standalone is running in ${session.home}`,
      remedy: "tradewind standalone",
    };
    if (config !== null) yield await checkPort(config);
    return;
  }
  const standalone = readStandalone(session.home);
  if (standalone?.pid !== undefined && standalone.pid === target.pid && !processAlive(standalone.pid)) {
    yield {
      name: "server",
      result: "fail",
      says: `the standalone of ${session.home} (process ${standalone.pid}) died`,
      remedy: "start it again: tradewind standalone",
    };
    if (config !== null) yield await checkPort(config);
    return;
  }
  const client = new Client(target);
  try {
    const health = await client.get<Health>("/monitor/health", {
      what: "cannot reach the server",
      timeoutMs: 5_000,
    });
    yield { name: "server", result: "ok", says: `${target.url} answers` };
    if (health.metadatabase.status === "degraded")
      yield {
        name: "disk space",
        result: "fail",
        says: "the database could not store data within the last minute: its disk is full",
        remedy: "free space on the database server",
      };
    yield component("scheduler", health.scheduler.status, health.scheduler.latest_scheduler_heartbeat);
    yield* checkServed(health.scheduler);
    if (health.scheduler.status === "healthy") {
      yield* checkSchedulers(client);
      yield* checkExecutors(client);
    }
    if (health.dag_processor)
      yield component(
        "dag processor",
        health.dag_processor.status,
        health.dag_processor.latest_dag_processor_heartbeat,
      );
    // Only if one has ever run: an installation without waiting tasks needs none.
    if (health.triggerer?.status)
      yield component("triggerer", health.triggerer.status, health.triggerer.latest_triggerer_heartbeat);
    if (health.triggerer) yield* checkTriggers(health.triggerer);
    yield* checkImports(client);
    yield* checkPools(client);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    const name = error.exit === EXIT.auth ? "token" : "server";
    const says = withCode(error.message, error.code);
    yield { name, result: "fail", says, ...(error.remedy ? { remedy: error.remedy } : {}) };
  }
}

function targetOf(session: Session): Target | undefined {
  try {
    return findTarget(session.options, session.host.env);
  } catch (error) {
    if (error instanceof CliError && error.code === "TW_CLI_NO_SERVER") return undefined;
    throw error;
  }
}

function component(name: string, status: string | null, heartbeat: string | null | undefined): Check {
  if (status === "healthy")
    return { name, result: "ok", says: heartbeat ? `alive, heartbeat ${relativeTime(heartbeat)}` : "alive" };
  const last = heartbeat ? `last heartbeat ${relativeTime(heartbeat)}` : "none is running";
  return {
    name,
    result: "fail",
    says: last,
    remedy: `start one: tradewind ${name.replace(" ", "-")} (or tradewind standalone)`,
  };
}

async function* checkImports(client: Client): AsyncGenerator<Check> {
  const what = "cannot list the import errors";
  const { items, total } = await client.list<ImportProblem>({
    path: "/importErrors",
    key: "import_errors",
    what,
    limit: 10,
  });
  if (total === 0) yield { name: "DAG files", result: "ok", says: "all load" };
  for (const { filename, stack_trace } of items) {
    yield {
      name: "DAG files",
      result: "warn",
      says: `${filename} fails to load: ${stack_trace.trim().split("\n", 1)[0]}`,
      remedy: "correct the file; its last good version stays in use",
    };
  }
  const more = total - items.length;
  if (more > 0) {
    yield {
      name: "DAG files",
      result: "warn",
      says: `${more} more files fail to load`,
      remedy: "tradewind dags errors",
      count: more,
    };
  }
}

/** A counted slot without a holder is lost permanently; more holders than slots mean oversubscription. */
async function* checkPools(client: Client): AsyncGenerator<Check> {
  const { items } = await client.list<Pool>({
    path: "/pools",
    key: "pools",
    what: "cannot list the pools",
    limit: 0,
  });
  let sound = 0;
  for (const pool of items) {
    const held = pool.running_slots + pool.queued_slots;
    // A deferral decides whether it keeps its slot; the pool's setting may have changed since.
    const atMost = held + pool.deferred_slots;
    const counted = pool.occupied_slots;
    if (pool.slots >= 0 && held > pool.slots) {
      yield {
        name: "pools",
        result: "warn",
        says: `${pool.name} has ${pool.slots} slots and ${held} in use`,
        remedy: "no action is needed if the pool was just made smaller",
      };
    } else if (counted < held || counted > atMost) {
      // The two numbers are not read at the same instant and may differ in a busy pool.
      yield {
        name: "pools",
        result: "warn",
        says: `${pool.name} counts ${counted} slots, its tasks hold ${held}`,
        remedy: "run doctor again when few tasks are running; if the difference stays, restart the scheduler",
      };
    } else sound++;
  }
  if (sound === items.length) yield { name: "pools", result: "ok", says: `${sound} consistent` };
}
