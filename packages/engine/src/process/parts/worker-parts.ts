import { hostname } from "node:os";
import { BundleCache } from "../../code/bundle-cache.ts";
import { LocalExecutor } from "../../execute/local/local-executor.ts";
import { fetchRemoteBundle } from "../../execute/worker/bundle-fetch.ts";
import { ExecutionClient, type ExecutionClientOptions } from "../../execute/worker/execution-client.ts";
import { RemoteLogs } from "../../execute/worker/remote-logs.ts";
import { RemoteOutputs } from "../../execute/worker/remote-outputs.ts";
import type { Repeats } from "../../execute/worker/repeated-call.ts";
import { Worker } from "../../execute/worker/worker.ts";
import { WorkerCalls } from "../../execute/worker/worker-calls.ts";
import { cleanScratch } from "../../output/output-retention.ts";
import type { Config } from "../../service/config.ts";
import { openHome } from "../../service/home.ts";
import type { Logger } from "../../service/logger.ts";
import { VERSION } from "../../version.ts";
import { prepareUserCode } from "./user-code.ts";

export interface WorkerPartsOptions extends Pick<ExecutionClientOptions, "url" | "token" | "ca"> {
  readonly name: string;
  readonly slots: number;
  /** Left out by the worker of a pod. */
  readonly queues?: readonly string[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly onDraining?: (isDraining: boolean) => void;
  /** A user has removed the worker. */
  readonly onRemoved?: () => void;
}

/** As of a scheduler: with the grace period it fits the 30 s of Kubernetes between SIGTERM and SIGKILL. */
export const WORKER_DRAIN_MS = 20_000;
/** Longer than any lease: an API that is away for that long gets neither the log nor the end. */
const LOG_PATIENCE_MS = 600_000;

/** A worker with its executor and its connection to the API: the same on any machine and in a pod. */
export async function createWorker(
  config: Config,
  logger: Logger,
  { ca, labels = {}, name, onDraining, onRemoved, queues, slots, token, url }: WorkerPartsOptions,
): Promise<{ readonly worker: Worker; readonly client: ExecutionClient }> {
  const home = await openHome(config.home);
  const user = await prepareUserCode({ config, home, logger });
  const client = new ExecutionClient({ url, token, ca });
  const repeats: Repeats = {
    isWanted: () => worker.isWanted,
    onRetry: (error) => logger.debug("call repeated", { error: error.message }),
  };
  const calls: WorkerCalls = new WorkerCalls({ ...repeats, client, worker: () => worker.id });
  await cleanScratch(home.outputs);
  const outputs: RemoteOutputs = new RemoteOutputs({
    client,
    repeats,
    claimOf: (assignment) => worker.claimOf(assignment),
    folder: home.outputs,
  });
  const bundles = new BundleCache(home.bundles, (hash) => fetchRemoteBundle(client, hash, repeats), [
    process.cwd(),
  ]);
  const executor = new LocalExecutor({
    parallelism: slots,
    graceMs: config.stopGraceMs,
    answer: (of, ask, agoMs) => calls.request(worker.claimOf(of.id), ask, agoMs),
    bundles,
    outputs,
    logs: new RemoteLogs({ calls, claimOf: (key) => worker.claimOfLog(key) }),
    // The API does not accept the log of an attempt that has ended.
    logPatienceMs: LOG_PATIENCE_MS,
    logger: logger.child({ component: "executor" }),
    user,
  });
  bundles.onOtherPackages(() => executor.replaceUsed());
  const identity = { name, hostname: hostname(), pid: process.pid, version: VERSION, slots, labels };
  const worker: Worker = new Worker({
    client,
    calls,
    executor,
    identity: { ...identity, ...(queues && { queues }) },
    logger: logger.child({ component: "worker" }),
    onRegistered: ({ outputLimits }) => {
      outputs.limits = outputLimits;
    },
    ...(onDraining && { onDraining }),
    ...(onRemoved && { onRemoved }),
  });
  return { worker, client };
}
