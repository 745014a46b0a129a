/**
 * A node of a private cluster for one namespace: binds its pods that have no node, runs their commands as processes of this machine, and writes
 * their status like a kubelet. Containers have no isolation: images, volumes, probes and hooks are ignored, and pods are
 * never restarted.
 */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PatchStrategy, setHeaderOptions, type V1Pod } from "@kubernetes/client-node";
import { afterFile } from "../support/after-file.ts";
import { AgentPod, type WaitingReason } from "./agent-pod.ts";
import type { ClusterNamespace } from "./cluster-namespace.ts";
import type { PrivateCluster } from "./kubernetes-cluster.ts";
import { podScheduler } from "./pod-scheduler.ts";
import { watchPods } from "./pod-watch.ts";

/** Why a pod does not start, until `endTrouble`. */
export type PodTrouble =
  /** Its status: PodScheduled is False, with reason Unschedulable. */
  | { readonly unschedulable: string }
  /** Its containers wait, for example with reason ImagePullBackOff; ContainerCreating: a slow start. */
  | { readonly waiting: WaitingReason };

export interface NodeAgentOptions {
  /** Called once per pod, before it is bound. */
  readonly trouble?: (pod: V1Pod) => PodTrouble | undefined;
  /** The command of containers without one: the entrypoint of their image. */
  readonly entrypoint?: readonly string[];
}

export interface NodeAgent {
  readonly nodeName: string;
  /** A pod of this node, running or ended. Throws if the node has not received it. */
  pod(name: string): AgentPod;
  pods(): readonly AgentPod[];
  endTrouble(name: string): void;
  /** The network between the node and the API server fails: its pods continue, their status stays. */
  disconnect(): void;
  /** Writes what has happened since, and ends pods that were deleted. */
  reconnect(): void;
  /** Disconnects it and kills its processes, as when the machine loses power. */
  lose(): void;
  stop(): Promise<void>;
}

export async function nodeAgent(
  cluster: PrivateCluster,
  namespace: ClusterNamespace,
  options: NodeAgentOptions = {},
): Promise<NodeAgent> {
  const { core } = cluster;
  const nodeName = `node-${randomBytes(3).toString("hex")}`;
  const folder = await mkdtemp(join(tmpdir(), "tw-node-"));
  const pods = new Map<string, AgentPod>();
  const troubles = new Map<string, PodTrouble | undefined>();
  let isConnected = true;

  const troubleOf = (pod: V1Pod) => {
    const uid = uidOf(pod);
    if (!troubles.has(uid)) troubles.set(uid, options.trouble?.(pod));
    return troubles.get(uid);
  };
  const node = { core, folder, entrypoint: options.entrypoint ?? [], isConnected: () => isConnected };
  const onPod = (pod: V1Pod) => {
    if (pod.spec?.nodeName !== nodeName || !isConnected) return;
    const known = pods.get(uidOf(pod));
    if (known !== undefined) return known.sync(pod);
    const trouble = troubleOf(pod);
    const waiting = trouble !== undefined && "waiting" in trouble ? trouble.waiting : undefined;
    pods.set(uidOf(pod), new AgentPod(pod, node, waiting));
  };
  const onGone = (pod: V1Pod) => {
    if (isConnected) pods.get(uidOf(pod))?.abandon();
  };
  await core.createNode({ body: { metadata: { name: nodeName } } });
  const setReady = async (status: "True" | "Unknown") => {
    const conditions = [{ type: "Ready", status, lastTransitionTime: new Date() }];
    await core.patchNodeStatus(
      { name: nodeName, body: { status: { conditions } } },
      setHeaderOptions("Content-Type", PatchStrategy.StrategicMergePatch),
    );
  };
  await setReady("True");
  const watch = await watchPods(cluster.config, { onPod, onGone }, namespace.name);
  const scheduler = await podScheduler(cluster, namespace, {
    nodes: () => (isConnected ? [nodeName] : []),
    unschedulable: (pod) => {
      const trouble = troubleOf(pod);
      return trouble !== undefined && "unschedulable" in trouble ? trouble.unschedulable : undefined;
    },
  });

  const disconnect = () => {
    isConnected = false;
    setReady("Unknown").catch(() => {});
  };
  const killAll = () => {
    for (const pod of pods.values()) pod.kill();
  };
  let stopping: Promise<void> | undefined;
  const stop = () => {
    isConnected = false;
    scheduler.stop();
    watch.stop();
    stopping ??= Promise.all([...pods.values()].map((pod) => pod.close())).then(() => {
      process.off("exit", killAll);
      return rm(folder, { recursive: true, force: true });
    });
    return stopping;
  };
  process.once("exit", killAll);
  opened.push(stop);
  return {
    nodeName,
    pods: () => [...pods.values()],
    pod: (name) => {
      const found = [...pods.values()].findLast((pod) => pod.name === name);
      if (found === undefined) throw new Error(`${nodeName} has no pod ${name}`);
      return found;
    },
    endTrouble: (name) => {
      for (const pod of watch.pods()) {
        if (pod.metadata?.name !== name) continue;
        troubles.set(uidOf(pod), undefined);
        pods.get(uidOf(pod))?.heal();
      }
      scheduler.reschedule();
    },
    disconnect,
    reconnect: () => {
      isConnected = true;
      setReady("True").catch(() => {});
      const existing = new Set(watch.pods().map(uidOf));
      for (const [uid, pod] of pods) if (!existing.has(uid)) pod.abandon();
      watch.pods().forEach(onPod);
      for (const pod of pods.values()) pod.publish();
      scheduler.reschedule();
    },
    lose: () => {
      disconnect();
      killAll();
    },
    stop,
  };
}

function uidOf(pod: V1Pod): string {
  return pod.metadata?.uid ?? "";
}

const opened: (() => Promise<void>)[] = [];

afterFile(async () => {
  await Promise.all(opened.splice(0).map((close) => close()));
});
