/**
 * Runs each assignment in a pod of its own, named after the assignment. Every scheduler watches all pods of the installation
 * and reports what becomes of them, so pods outlive the scheduler that created them. Nothing is stored here:
 *
 * - If the process dies before a pod is created, another scheduler finds an assignment without a worker and without a pod.
 * - If it dies before it has reported or removed a pod that ended, another scheduler sees the same pod.
 * - Creating a pod twice is refused by its name, reporting an end twice by the database.
 */
import type { V1Pod } from "@kubernetes/client-node";
import { Outage } from "../../service/outage.ts";
import type {
  Launcher,
  LauncherHost,
  LaunchFailure,
  LaunchRequest,
  UnclaimedAssignment,
} from "../remote/launcher.ts";
import { WriteQueue } from "../remote/write-queue.ts";
import type { PodApi } from "./pod-api.ts";
import { PodApiError } from "./pod-api-error.ts";
import { type NewPod, PodCreation } from "./pod-creation.ts";
import { assignmentOf, DONE, selectorOf } from "./pod-labels.ts";
import { loadPodTemplates } from "./pod-templates.ts";
import { type EndedPod, PodTracker } from "./pod-tracker.ts";
import { PodWatch } from "./pod-watch.ts";
import { PodConfigError, type PodTerms, taskPod } from "./task-pod.ts";

export interface KubernetesLauncherOptions {
  /** The address of the API as seen from pods. */
  readonly executionUrl: string;
  /** The file of the pod templates. */
  readonly podTemplate: string;
  /** The first one is the default. Empty: that of the kubeconfig, or of the pod that this process runs in. */
  readonly namespaces: readonly string[];
  /** Which pods are deleted when they have ended. */
  readonly deletePods: "always" | "onSuccess" | "never";
  /** How long a pod may take until its task container runs. */
  readonly pendingMs: number;
  /** Pods created per second. */
  readonly createRate: number;
  /** The path of a kubeconfig. Left out: KUBECONFIG, or the account of the pod that this process runs in. */
  readonly kubeconfig?: string;
  /** Interval of the sweep. Default: 5 s. */
  readonly sweepMs?: number;
}

interface Parts {
  readonly host: LauncherHost;
  readonly api: PodApi;
  readonly terms: PodTerms;
  readonly creation: PodCreation;
  readonly tracker: PodTracker;
  readonly watches: readonly PodWatch[];
  readonly ends: WriteQueue<EndedPod>;
  readonly outage: Outage;
}

const SWEEP_MS = 5_000;
const PAGE = 500;
/** Pods of other schedulers: they report their ends first. */
const OTHERS_DELAY_MS = 3_000;
/** A pod without an assignment gets this many intervals of the sweep to end by itself. */
const ORPHAN_SWEEPS = 3;
/** After this many, a pod that this process has created and never seen is created again. */
const UNSEEN_SWEEPS = 6;

export class KubernetesLauncher implements Launcher {
  readonly #options: KubernetesLauncherOptions;
  /** The pods that this process has launched, by assignment, while they exist. */
  readonly #own = new Map<string, { readonly pod: V1Pod; readonly since: number }>();
  /** Pods without an assignment at the last sweep. */
  #orphans: ReadonlySet<string> = new Set();
  #parts: Parts | null = null;
  #timer: NodeJS.Timeout | null = null;
  #sweeping: Promise<void> | null = null;

  constructor(options: KubernetesLauncherOptions) {
    this.#options = options;
  }

  async start(host: LauncherHost): Promise<void> {
    const {
      createRate,
      executionUrl,
      kubeconfig,
      pendingMs,
      podTemplate,
      sweepMs = SWEEP_MS,
    } = this.#options;
    const { logger } = host;
    const templates = await loadPodTemplates(podTemplate);
    const { connectPodApi } = await import("./pod-api.ts");
    const api = connectPodApi(kubeconfig);
    const namespaces = this.#options.namespaces.length > 0 ? this.#options.namespaces : [api.namespace];
    const owner = { executor: host.executor, installation: await host.installation() };
    const ends = new WriteQueue<EndedPod>({
      write: (batch) => this.#reportEnds(batch),
      // The next sweep tries again.
      failed: (ended) => tracker.reopen(ended),
      logger,
      what: "report the ends of pods",
    });
    const tracker: PodTracker = new PodTracker({
      pendingMs,
      onEnded: (ended) => ends.add(ended),
      delayMs: (assignment) => (this.#own.has(assignment) ? 0 : OTHERS_DELAY_MS),
    });
    const creation = new PodCreation({
      create: ({ id, namespace, pod }) => api.create(namespace, pod).finally(() => this.#renew(id)),
      onRefused: (pod, error) => this.#onRefused(pod, error),
      rate: createRate,
      logger,
    });
    const watches = namespaces.map(
      (namespace) =>
        new PodWatch({
          ...{ api, namespace, logger, labels: selectorOf(owner) },
          onPod: (pod) => tracker.seen(pod),
          onGone: (pod) => this.#onGone(pod),
        }),
    );
    const terms = { templates, owner, namespaces, executionUrl };
    const outage = new Outage(logger, "look after pods");
    this.#parts = { api, creation, ends, host, outage, terms, tracker, watches };
    for (const watch of watches) watch.start();
    this.#timer = setInterval(() => this.#sweep(), sweepMs);
  }

  launch(requests: readonly LaunchRequest[]): void {
    for (let at = 0; at < requests.length; at += PAGE) void this.#launch(requests.slice(at, at + PAGE));
  }

  /** A pod that is just being created is deleted afterwards. */
  withdraw(ids: readonly string[]): void {
    for (const id of ids) void this.#withdraw(id);
  }

  problem(): string | null {
    const { creation, outage, watches } = this.#parts ?? {};
    return (
      creation?.problem ??
      watches?.map((watch) => watch.problem).find((each) => each !== null) ??
      outage?.problem ??
      null
    );
  }

  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    await this.#sweeping;
    const parts = this.#parts;
    if (parts === null) return;
    const { api, creation, ends, tracker, watches } = parts;
    await Promise.all([creation.stop(), ...watches.map((watch) => watch.stop())]);
    tracker.stop();
    await ends.close();
    this.#parts = null;
    await api.close();
  }

  /** What fails here is found by the next sweep. */
  async #launch(requests: readonly LaunchRequest[]): Promise<void> {
    const parts = this.#parts;
    if (parts === null) return;
    const { creation, host, outage, terms, tracker, watches } = parts;
    // Most assignments of a former owner have pods.
    await Promise.all(watches.map((watch) => watch.listed));
    const missing = requests.filter(({ id }) => !creation.has(id) && tracker.podOf(id) === undefined);
    if (missing.length === 0) return;
    try {
      const tasks = await host.describe(missing.map(({ id }) => id));
      const pods: NewPod[] = [];
      const refused = new Map<string, string>();
      for (const { config, id, priority, queue } of missing) {
        const task = tasks.get(id);
        // Cancelled meanwhile.
        if (task === undefined) continue;
        try {
          const made = taskPod({ id, queue, config, task, launchToken: host.launchToken(id) }, terms);
          pods.push({ ...made, id, priority });
          const { name, namespace } = made;
          this.#own.set(id, { pod: { metadata: { name, namespace } }, since: performance.now() });
        } catch (error) {
          if (!(error instanceof PodConfigError)) throw error;
          refused.set(id, error.message);
        }
      }
      creation.add(pods);
      await host.failed(mapValues(refused, (message) => ({ code: "POD_REJECTED", message })));
    } catch (error) {
      outage.failed(error);
    }
  }

  /** It may have waited for its creation for long. */
  #renew(id: string): void {
    const own = this.#own.get(id);
    if (own !== undefined) this.#own.set(id, { ...own, since: performance.now() });
  }

  #onRefused({ id, name, namespace }: NewPod, { message, status }: PodApiError): void {
    this.#own.delete(id);
    const parts = this.#parts;
    if (parts === null) return;
    const text = `The Kubernetes API rejected pod ${name} in namespace ${namespace} (status ${status}): ${message}`;
    parts.host.logger.warn("pod rejected", { pod: name, status, error: message });
    parts.host
      .failed(new Map([[id, { code: "POD_REJECTED", message: text }]]))
      .catch((error) => parts.outage.failed(error));
  }

  async #withdraw(id: string): Promise<void> {
    const parts = this.#parts;
    if (parts === null) return;
    const mayExist = await parts.creation.remove(id);
    // It may have been created a moment ago, and not be seen yet.
    const pod = parts.tracker.giveUp(id) ?? (mayExist ? this.#own.get(id)?.pod : undefined);
    this.#own.delete(id);
    if (pod !== undefined) await this.#delete(pod);
  }

  #onGone(pod: V1Pod): void {
    this.#parts?.tracker.gone(pod);
    this.#own.delete(assignmentOf(pod.metadata?.labels) ?? "");
    this.#parts?.creation.retry();
  }

  async #reportEnds(batch: readonly EndedPod[]): Promise<void> {
    const parts = this.#parts;
    if (parts === null) return;
    const reasons = new Map<string, string>();
    const failures = new Map<string, LaunchFailure>();
    for (const { assignment, end } of batch)
      if (end.kind === "lost") reasons.set(assignment, end.reason);
      else failures.set(assignment, end);
    await parts.host.lost(reasons);
    await parts.host.failed(failures);
    for (const ended of batch) void this.#cleanUp(ended);
  }

  /** A pod that has not ended is deleted in any case: what it would do does not count any more. */
  async #cleanUp({ isSuccess, pod }: Pick<EndedPod, "isSuccess" | "pod">): Promise<void> {
    const { deletePods } = this.#options;
    const hasEnded = pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";
    const isKept = deletePods === "never" || (deletePods === "onSuccess" && !isSuccess);
    if (!hasEnded || !isKept) return this.#delete(pod);
    const { name = "", namespace = "" } = pod.metadata ?? {};
    await this.#quietly(({ api }) => api.label(namespace, name, { [DONE]: "true" }));
  }

  async #delete(pod: V1Pod): Promise<void> {
    const { name = "", namespace = "", uid } = pod.metadata ?? {};
    await this.#quietly(({ api }) => api.delete(namespace, name, uid));
  }

  /** What fails here is found by a later sweep. A pod may be gone, or another one may have its name. */
  async #quietly(work: (parts: Parts) => Promise<void>): Promise<void> {
    const parts = this.#parts;
    if (parts === null) return;
    try {
      await work(parts);
    } catch (error) {
      if (!(error instanceof PodApiError && (error.isMissing || error.status === 409)))
        parts.outage.failed(error);
    }
  }

  #sweep(): void {
    const parts = this.#parts;
    if (parts === null) return;
    this.#sweeping ??= this.#lookAfter(parts)
      .then(() => parts.outage.passed())
      .catch((error) => parts.outage.failed(error))
      .finally(() => {
        this.#sweeping = null;
      });
  }

  async #lookAfter(parts: Parts): Promise<void> {
    parts.tracker.recheck();
    await this.#launchMissing(parts);
    await this.#deleteOrphans(parts);
  }

  /** Assignments without a pod: their launch was lost with another scheduler. */
  async #launchMissing({ creation, host, tracker }: Parts): Promise<void> {
    const waitedMs = this.#options.sweepMs ?? SWEEP_MS;
    for (let after: UnclaimedAssignment | undefined; ; ) {
      const page = await host.unclaimed({ waitedMs, limit: PAGE, ...(after && { after }) });
      // The watch may be late: a pod that was just created is not missing.
      const recent = performance.now() - UNSEEN_SWEEPS * waitedMs;
      const missing = page.filter(({ id }) => {
        const { since = 0 } = this.#own.get(id) ?? {};
        return !creation.has(id) && tracker.podOf(id) === undefined && since < recent;
      });
      if (missing.length > 0) await this.#launch(missing);
      after = page.at(-1);
      if (page.length < PAGE) return;
    }
  }

  /** Pods without an assignment, e.g. of a run that was deleted, and pods that could not be deleted before. */
  async #deleteOrphans({ host, tracker }: Parts): Promise<void> {
    const ms = ORPHAN_SWEEPS * (this.#options.sweepMs ?? SWEEP_MS);
    const open = tracker.open(ms);
    const existing = await host.existing(open.map(({ assignment }) => assignment));
    const orphans = open.filter(({ assignment }) => !existing.has(assignment));
    for (const { assignment, pod } of orphans) {
      // At the first time it may just have reported its end.
      if (!this.#orphans.has(assignment)) continue;
      host.logger.info("deleting a pod without an assignment", { pod: pod.metadata?.name });
      tracker.giveUp(assignment);
      await this.#delete(pod);
    }
    this.#orphans = new Set(orphans.map(({ assignment }) => assignment));
    for (const { isSuccess, pod } of tracker.left(ms)) await this.#cleanUp({ isSuccess, pod });
  }
}

function mapValues<From, To>(of: ReadonlyMap<string, From>, change: (from: From) => To): Map<string, To> {
  return new Map([...of].map(([key, value]) => [key, change(value)]));
}
