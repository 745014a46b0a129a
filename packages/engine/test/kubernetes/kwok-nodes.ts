/**
 * Thousands of pods without processes: kwok writes the status of all pods on its nodes. Pods run until they are deleted,
 * or for the time in their annotation RUN_TIME.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { CoreV1Api } from "@kubernetes/client-node";
import { afterFile } from "../support/after-file.ts";
import type { ClusterNamespace } from "./cluster-namespace.ts";
import { kwokBinary } from "./kubernetes-binaries.ts";
import type { PrivateCluster } from "./kubernetes-cluster.ts";
import { ownedProgram } from "./owned-program.ts";
import { podScheduler } from "./pod-scheduler.ts";

/** A pod with it, for example "500ms" or "2s", succeeds after that time. */
export const RUN_TIME = "tradewind.test/run-time";

export interface KwokNodes {
  readonly names: readonly string[];
  stop(): Promise<void>;
}

const MANAGED = "kwok.x-k8s.io/node";

/** Adds nodes to the cluster, and binds the pods of the namespace to them. */
export async function kwokNodes(
  cluster: PrivateCluster,
  namespace: ClusterNamespace,
  count = 10,
): Promise<KwokNodes> {
  const { core, folder, kubeconfigPath } = cluster;
  const binary = await kwokBinary();
  const config = join(folder, "kwok.json");
  await writeFile(config, CONFIG.map((document) => JSON.stringify(document)).join("\n---\n"));
  const names = Array.from({ length: count }, (_, at) => `kwok-${at}`);
  for (const name of names) {
    await core.createNode({ body: { metadata: { name, annotations: { [MANAGED]: "fake" } } } });
  }
  const kwok = await ownedProgram(
    binary,
    [
      ...["--kubeconfig", kubeconfigPath, "--config", config, "--v", "WARN"],
      ...["--manage-nodes-with-annotation-selector", `${MANAGED}=fake`],
    ],
    join(folder, "kwok.log"),
  );
  while (!(await areReady(core, names))) {
    if (!kwok.isRunning) throw new Error(`kwok has ended:\n${await kwok.lastLines()}`);
    await sleep(50);
  }
  const scheduler = await podScheduler(cluster, namespace, { nodes: () => names });
  const stop = async () => {
    scheduler.stop();
    await kwok.kill();
  };
  opened.push(stop);
  return { names, stop };
}

async function areReady(core: CoreV1Api, names: readonly string[]): Promise<boolean> {
  const { items } = await core.listNode();
  const ready = items.filter(({ status }) => status?.conditions?.some(({ type }) => type === "Ready"));
  const found = new Set(ready.map(({ metadata }) => metadata?.name));
  return names.every((name) => found.has(name));
}

const NOT_DELETED = { key: ".metadata.deletionTimestamp", operator: "DoesNotExist" };

function inPhase(phase: string) {
  return { key: ".status.phase", operator: "In", values: [phase] };
}

function stage(name: string, kind: string, matchExpressions: readonly object[], rest: object) {
  return {
    apiVersion: "kwok.x-k8s.io/v1alpha1",
    kind: "Stage",
    metadata: { name },
    spec: { resourceRef: { apiGroup: "v1", kind }, selector: { matchExpressions }, ...rest },
  };
}

function podStatus(phase: string, state: string): { next: { statusTemplate: string } } {
  const container = `{ name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: "", ready: false, restartCount: 0, state: ${state} }`;
  const statuses = `containerStatuses: [{{ range .spec.containers }}${container},{{ end }}]`;
  return { next: { statusTemplate: `phase: ${phase}\n${statuses}` } };
}

const READY = '{ type: Ready, status: "True", reason: KubeletReady, lastTransitionTime: {{ Now | Quote }} }';

const CONFIG = [
  {
    apiVersion: "config.kwok.x-k8s.io/v1alpha1",
    kind: "KwokConfiguration",
    options: {
      nodePlayStageParallelism: 4,
      nodeLeaseParallelism: 4,
      podPlayStageParallelism: 16,
      podsOnNodeSyncParallelism: 4,
    },
  },
  stage("node-ready", "Node", [{ key: ".status.conditions", operator: "DoesNotExist" }], {
    next: { statusTemplate: `conditions: [${READY}]` },
  }),
  stage(
    "pod-run",
    "Pod",
    [NOT_DELETED, inPhase("Pending")],
    podStatus("Running", "{ running: { startedAt: {{ Now | Quote }} } }"),
  ),
  stage(
    "pod-succeed",
    "Pod",
    [NOT_DELETED, inPhase("Running"), { key: `.metadata.annotations["${RUN_TIME}"]`, operator: "Exists" }],
    {
      delay: { durationFrom: { expressionFrom: `.metadata.annotations["${RUN_TIME}"]` } },
      ...podStatus(
        "Succeeded",
        "{ terminated: { exitCode: 0, reason: Completed, startedAt: {{ Now | Quote }}, finishedAt: {{ Now | Quote }} } }",
      ),
    },
  ),
  stage("pod-delete", "Pod", [{ ...NOT_DELETED, operator: "Exists" }], { next: { delete: true } }),
];

const opened: (() => Promise<void>)[] = [];

afterFile(async () => {
  await Promise.all(opened.splice(0).map((close) => close()));
});
