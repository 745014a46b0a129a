/**
 * `tradewind execute`: runs one assignment in a pod, and ends. Its token is valid for this assignment only. An entry of its
 * own: a pod pays for each module that it loads.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { ExecutionError } from "../execute/worker/execution-client.ts";
import { type Config, type ConfigSources, readConfig } from "../service/config.ts";
import { createLogger } from "../service/logger.ts";
import { createWorker, WORKER_DRAIN_MS } from "./parts/worker-parts.ts";

export interface PodWorkerStart {
  readonly assignment: string;
  readonly url: string;
  /** The launch token of the assignment. */
  readonly token: string;
  readonly ca?: string | undefined;
  /** The pod is to end: the assignment is handed back if it does not end soon. */
  readonly signal: AbortSignal;
  readonly env: NonNullable<ConfigSources["env"]>;
  /** How long the API may be unreachable at the start. Default: 5 min. */
  readonly patienceMs?: number;
}

/** "superseded": the assignment is not to be run any more. "handed back": it starts again elsewhere. */
export type PodWorkerEnd = "ended" | "superseded" | "handed back";

/** An API that is being deployed, or a network that is being set up. */
const PATIENCE_MS = 5 * 60_000;

/** @throws PodWorkerError if the API cannot be reached, or rejects the pod. */
export async function runPodWorker(start: PodWorkerStart): Promise<PodWorkerEnd> {
  const own = await mkdtemp(join(tmpdir(), "tradewind-pod-"));
  try {
    const { TRADEWIND_HOME: home = own } = start.env;
    return await run(readConfig({ env: start.env, flags: { home } }), start);
  } finally {
    await rm(own, { recursive: true, force: true });
  }
}

async function run(config: Config, start: PodWorkerStart): Promise<PodWorkerEnd> {
  const { assignment, patienceMs = PATIENCE_MS, signal } = start;
  const logger = createLogger({ level: config.logLevel, format: config.logFormat });
  const { client, worker } = await createWorker(config, logger, { ...start, name: hostname(), slots: 1 });
  const patience = AbortSignal.timeout(patienceMs);
  try {
    await worker.start(AbortSignal.any([signal, patience]));
  } catch (error) {
    client.close();
    if (error instanceof ExecutionError && error.code === "ASSIGNMENT_ENDED") return "superseded";
    if (signal.aborted) return "handed back";
    throw new PodWorkerError(start.url, patience.aborted ? null : error);
  }
  const stop = Promise.withResolvers<void>();
  const onStop = () => stop.resolve();
  signal.addEventListener("abort", onStop);
  if (signal.aborted) onStop();
  let end: PodWorkerEnd | null = null;
  try {
    const running = worker.run(assignment).then((isMine) => {
      end ??= isMine ? "ended" : "superseded";
    });
    await Promise.race([running, stop.promise]);
    if (end === null) await Promise.race([running, worker.drain(config.drainMs ?? WORKER_DRAIN_MS)]);
    end ??= "handed back";
    return end;
  } catch (error) {
    throw new PodWorkerError(start.url, error);
  } finally {
    signal.removeEventListener("abort", onStop);
    await worker.stop(config.stopGraceMs);
    client.close();
  }
}

export class PodWorkerError extends Error {
  /** The status of the API's answer; 0: there was none. */
  readonly status: number;

  /** @param cause null: the API was unreachable for too long. */
  constructor(url: string, cause: unknown) {
    const why = cause === null ? "it cannot be reached; see the log above" : (cause as Error).message;
    super(`The API at ${url} does not let this pod run its task: ${why}.`, { cause });
    this.status = cause instanceof ExecutionError ? cause.status : 0;
  }
}
