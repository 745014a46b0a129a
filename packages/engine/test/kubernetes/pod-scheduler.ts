import {
  ApiException,
  CoreV1Api,
  PatchStrategy,
  setHeaderOptions,
  type V1Pod,
} from "@kubernetes/client-node";
import type { ClusterNamespace } from "./cluster-namespace.ts";
import type { PrivateCluster } from "./kubernetes-cluster.ts";
import { watchPods } from "./pod-watch.ts";

export interface PodSchedulerOptions {
  /** The nodes, which get the pods in turn. None: no pod is bound now. */
  readonly nodes: () => readonly string[];
  /** Why no node fits this pod; undefined: it is bound. */
  readonly unschedulable?: (pod: V1Pod) => string | undefined;
}

export interface PodScheduler {
  /** Evaluates the pods again that have no node. */
  reschedule(): void;
  stop(): void;
}

/** Binding more pods at once makes the API server no faster. */
const CONCURRENT = 16;

/** Binds the pods of a namespace, as kube-scheduler does, except that every pod fits every node. */
export async function podScheduler(
  { config }: PrivateCluster,
  { name: namespace }: ClusterNamespace,
  { nodes, unschedulable }: PodSchedulerOptions,
): Promise<PodScheduler> {
  const core = config.makeApiClient(CoreV1Api);
  const waiting = new Map<string, V1Pod>();
  let workers = 0;
  let turn = 0;
  let isStopped = false;

  const schedule = async (pod: V1Pod) => {
    const { name = "", uid } = pod.metadata ?? {};
    const reason = unschedulable?.(pod);
    if (reason !== undefined) return reject(pod, reason);
    const free = nodes();
    const node = free[turn++ % free.length];
    if (node === undefined) return;
    await core.createNamespacedPodBinding({
      name,
      namespace,
      body: { metadata: { name, uid }, target: { apiVersion: "v1", kind: "Node", name: node } },
    });
  };
  const reject = async (pod: V1Pod, message: string) => {
    const { name = "", uid } = pod.metadata ?? {};
    const [former] = pod.status?.conditions?.filter(({ type }) => type === "PodScheduled") ?? [];
    if (former?.reason === "Unschedulable" && former.message === message) return;
    const condition = { type: "PodScheduled", status: "False", reason: "Unschedulable", message };
    const conditions = [{ ...condition, lastTransitionTime: new Date().toISOString() }];
    await core.patchNamespacedPodStatus(
      { name, namespace, body: { metadata: { uid }, status: { conditions } } },
      setHeaderOptions("Content-Type", PatchStrategy.MergePatch),
    );
  };
  const work = async () => {
    workers++;
    while (!isStopped) {
      const [next] = waiting;
      if (next === undefined) break;
      waiting.delete(next[0]);
      await schedule(next[1]).catch((error: unknown) => {
        // Deleted, or bound by another scheduler. After a lost connection the watch lists all pods again.
        if (error instanceof ApiException && ![404, 409].includes(error.code)) console.error(error);
      });
    }
    workers--;
  };
  const consider = (pod: V1Pod) => {
    const isFree = !pod.spec?.nodeName && !pod.metadata?.deletionTimestamp && !pod.spec?.schedulingGates;
    if (!isFree || pod.spec?.schedulerName !== "default-scheduler") return;
    waiting.set(pod.metadata?.uid ?? "", pod);
    if (workers < CONCURRENT) void work();
  };
  const onGone = (pod: V1Pod) => void waiting.delete(pod.metadata?.uid ?? "");
  const watch = await watchPods(config, { onPod: consider, onGone }, namespace);
  return {
    reschedule: () => watch.pods().forEach(consider),
    stop: () => {
      isStopped = true;
      watch.stop();
    },
  };
}
