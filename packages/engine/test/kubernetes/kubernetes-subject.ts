/** An installation for the conformance suite whose tasks run in pods of a private cluster, on the node agent. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { V1Pod } from "@kubernetes/client-node";
import { ApiException } from "@kubernetes/client-node";
import type { ExecutorSubject } from "../../src/execute/conformance/conformance.ts";
import { openSite } from "../execute/executor-subject.ts";
import type { PrivateCluster } from "./kubernetes-cluster.ts";
import { COMMAND } from "./kubernetes-rig.ts";
import { nodeAgent } from "./node-agent.ts";

const TEMPLATE = `
apiVersion: v1
kind: Pod
spec:
  containers:
    - name: task
      image: example/tasks:1
      env:
        - { name: TRADEWIND_DRAIN, value: 3s }
        - { name: TRADEWIND_STOP_GRACE_MS, value: "1000" }
`;

export async function kubernetesSubject(cluster: PrivateCluster): Promise<ExecutorSubject> {
  const [{ installation, scheduler: startScheduler, token, url }, namespace] = await Promise.all([
    openSite(),
    cluster.namespace(),
  ]);
  const agent = await nodeAgent(cluster, namespace, { entrypoint: COMMAND });
  const podTemplate = join(installation.root, "pod.yaml");
  await writeFile(podTemplate, TEMPLATE);
  const environment = {
    KUBECONFIG: namespace.kubeconfigPath,
    TRADEWIND_EXECUTOR: "kubernetes",
    TRADEWIND_EXECUTION_URL: url,
    TRADEWIND_POD_TEMPLATE: podTemplate,
  };
  let scheduler = await startScheduler(environment);
  const pods = new Map<string, V1Pod>();
  return {
    url,
    token,
    isRemote: true,
    killScheduler: async () => {
      await scheduler.kill();
      scheduler = await startScheduler(environment);
    },
    killRunner: async (attempt) => agent.pod(podName(attempt)).kill(),
    stopRunner: async (attempt) => {
      await namespace.core.deleteNamespacedPod({ namespace: namespace.name, name: podName(attempt) });
    },
    // As a scheduler does that does not know of the pod.
    launchAgain: async (attempts) => {
      for (const name of attempts.map(podName)) {
        const pod =
          pods.get(name) ?? (await namespace.core.readNamespacedPod({ namespace: namespace.name, name }));
        pods.set(name, pod);
        await createAgain(pod);
      }
    },
  };

  async function createAgain({ metadata: { annotations, labels, name } = {}, spec }: V1Pod): Promise<void> {
    const { nodeName: _, ...unbound } = spec ?? { containers: [] };
    const body = { metadata: { annotations, labels, name }, spec: unbound } as V1Pod;
    await namespace.core.createNamespacedPod({ namespace: namespace.name, body }).catch((error: unknown) => {
      if (!(error instanceof ApiException && error.code === 409)) throw error;
    });
  }
}

function podName(attempt: string): string {
  return `tradewind-${attempt}`;
}
