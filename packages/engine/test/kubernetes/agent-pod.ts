import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  ApiException,
  type CoreV1Api,
  PatchStrategy,
  setHeaderOptions,
  type V1Container,
  type V1Pod,
} from "@kubernetes/client-node";
import { containerProgram } from "./container-env.ts";
import { ContainerProcess } from "./container-process.ts";
import { podStatus } from "./pod-status.ts";

/** What a pod needs of its node. */
export interface AgentNode {
  readonly core: CoreV1Api;
  /** For the output of containers. */
  readonly folder: string;
  /** The command of containers without one. */
  readonly entrypoint: readonly string[];
  /** Without a connection, no status is written. */
  isConnected(): boolean;
}

/** Why a container does not start: the reason and message of its waiting state. */
export interface WaitingReason {
  readonly reason: string;
  readonly message?: string;
}

/** Why the node ends a pod. */
export interface PodEnd {
  readonly graceMs: number;
  readonly reason?: string;
  readonly message?: string;
  readonly isDisruption?: boolean;
}

const RETRY_MS = 100;

/** One pod on its node: runs its containers and writes its status until it has ended. */
export class AgentPod {
  readonly startTime = new Date();
  readonly init: readonly ContainerProcess[];
  readonly containers: readonly ContainerProcess[];
  private readonly node: AgentNode;
  private latest: V1Pod;
  private waitingReason: WaitingReason | undefined;
  private readonly healed = Promise.withResolvers<void>();
  private end: PodEnd | undefined;
  private hasEnded = false;
  private isDirty = false;
  private isWriting = false;
  private readonly ended: Promise<void>;

  constructor(pod: V1Pod, node: AgentNode, waitingReason: WaitingReason | undefined) {
    this.node = node;
    this.latest = pod;
    this.waitingReason = waitingReason;
    if (waitingReason === undefined) this.healed.resolve();
    const container = (spec: V1Container) =>
      new ContainerProcess(spec, join(node.folder, `${pod.metadata?.uid}-${spec.name}.log`));
    this.init = pod.spec?.initContainers?.map(container) ?? [];
    this.containers = pod.spec?.containers.map(container) ?? [];
    this.ended = this.run();
  }

  get namespace(): string {
    return this.latest.metadata?.namespace ?? "";
  }

  get name(): string {
    return this.latest.metadata?.name ?? "";
  }

  /** Of the running container. */
  get pid(): number | undefined {
    return [...this.init, ...this.containers].find(({ isRunning }) => isRunning)?.pid;
  }

  /** The output of its first container. */
  async output(): Promise<string> {
    return (await this.containers[0]?.output()) ?? "";
  }

  /** Ends its containers like the kernel's out-of-memory killer. */
  outOfMemory(): void {
    if (this.pid === undefined) throw new Error(`pod ${this.name} has no running process`);
    for (const container of this.containers) container.kill("OOMKilled");
  }

  /** Ends it like a kubelet whose node runs out of a resource. */
  evict(message = "The node was low on resource: memory. "): void {
    this.terminate({ graceMs: 1000, reason: "Evicted", message, isDisruption: true });
  }

  /** Kills its processes, and starts no other. */
  kill(): void {
    this.terminate({ graceMs: 0 });
    for (const container of [...this.init, ...this.containers]) container.kill();
  }

  /** Its containers may start now. */
  heal(): void {
    this.waitingReason = undefined;
    this.healed.resolve();
    this.publish();
  }

  sync(pod: V1Pod): void {
    this.latest = pod;
    const { deletionTimestamp, deletionGracePeriodSeconds: seconds } = pod.metadata ?? {};
    if (!deletionTimestamp) return;
    this.terminate({ graceMs: Math.max(1, seconds ?? 30) * 1000 });
    // If it has ended before, this deletes it.
    this.publish();
  }

  /** It has been deleted by force: only its processes are left. */
  abandon(): void {
    this.terminate({ graceMs: 1000 });
  }

  /** Kills its processes and waits for their end. */
  async close(): Promise<void> {
    this.kill();
    await this.ended;
  }

  publish(): void {
    this.isDirty = true;
    if (!this.isWriting) void this.write();
  }

  private terminate(end: PodEnd): void {
    if (this.end !== undefined && this.end.graceMs <= end.graceMs) return;
    // The first reason counts, the shortest grace period too.
    this.end = { ...end, ...this.end, graceMs: end.graceMs };
    this.healed.resolve();
    for (const container of [...this.init, ...this.containers]) container.stop(end.graceMs);
  }

  private async run(): Promise<void> {
    const deadline = this.limitTime();
    this.publish();
    await this.healed.promise;
    for (const container of this.init) {
      await this.execute(container);
      if (container.exitCode !== 0) break;
    }
    if (this.init.every(({ exitCode }) => exitCode === 0))
      await Promise.all(this.containers.map((container) => this.execute(container)));
    clearTimeout(deadline);
    this.hasEnded = true;
    this.publish();
  }

  private async execute(container: ContainerProcess): Promise<void> {
    while (this.end === undefined && container.state.waiting !== undefined) {
      try {
        const program = await containerProgram(
          this.node.core,
          this.latest,
          container.spec,
          this.node.entrypoint,
        );
        if (this.end !== undefined) return;
        await container.start(program.command, program.env);
      } catch (error) {
        const message = (error as Error).message;
        container.state = { waiting: { reason: "CreateContainerConfigError", message } };
        this.publish();
        await sleep(RETRY_MS);
      }
    }
    if (this.end !== undefined) container.stop((this.end as PodEnd).graceMs);
    this.publish();
    await container.end();
    this.publish();
  }

  private limitTime(): NodeJS.Timeout | undefined {
    const { activeDeadlineSeconds, terminationGracePeriodSeconds = 30 } = this.latest.spec ?? {};
    if (activeDeadlineSeconds === undefined) return undefined;
    const end = {
      graceMs: terminationGracePeriodSeconds * 1000,
      reason: "DeadlineExceeded",
      message: "Pod was active on the node longer than the specified deadline",
    };
    return setTimeout(() => this.terminate(end), activeDeadlineSeconds * 1000);
  }

  /** One writer per pod: a change during a write is written after it, several changes at once. */
  private async write(): Promise<void> {
    this.isWriting = true;
    while (this.isDirty && this.node.isConnected()) {
      this.isDirty = false;
      try {
        await this.store();
      } catch (error) {
        if (error instanceof ApiException && error.code < 429) {
          // The pod no longer exists, or its name belongs to another one. Other errors are ours.
          if (![404, 409].includes(error.code)) console.error(error);
          break;
        }
        this.isDirty = true;
        await sleep(RETRY_MS);
      }
    }
    this.isWriting = false;
  }

  private async store(): Promise<void> {
    const { core } = this.node;
    const { name, namespace } = this;
    const { uid, deletionTimestamp } = this.latest.metadata ?? {};
    const { waitingReason, end, hasEnded } = this;
    const status = podStatus(this.latest, this, { waitingReason, end, hasEnded });
    await core.patchNamespacedPodStatus(
      { name, namespace, body: { metadata: { uid }, status } },
      setHeaderOptions("Content-Type", PatchStrategy.StrategicMergePatch),
    );
    if (!hasEnded || !deletionTimestamp) return;
    // With a body, the API server ignores the parameter gracePeriodSeconds of the URL.
    const body = { gracePeriodSeconds: 0, preconditions: { uid } };
    await core.deleteNamespacedPod({ name, namespace, body });
  }
}
