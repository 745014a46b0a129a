import { PatchStrategy, setHeaderOptions, type V1Pod } from "@kubernetes/client-node";
import { beforeAll, describe, expect, it } from "vitest";
import type { ClusterNamespace } from "./cluster-namespace.ts";
import {
  type KubernetesCluster,
  kubernetesCluster,
  privateCluster,
  usesExistingCluster,
} from "./kubernetes-cluster.ts";
import { podGone, podThat } from "./pod-wait.ts";

describe("account of the executor", () => {
  let cluster: KubernetesCluster;
  let namespace: ClusterNamespace;

  beforeAll(async () => {
    cluster = await kubernetesCluster();
    namespace = await cluster.namespace();
  });

  it("may create, read, list, watch, patch and delete pods of its namespace", async () => {
    const { core, name } = namespace;
    const seen = podThat(namespace, "task", ({ metadata }) => metadata?.labels?.app === "changed");
    await core.createNamespacedPod({ namespace: name, body: pod("task") });
    await core.patchNamespacedPod(
      { namespace: name, name: "task", body: { metadata: { labels: { app: "changed" } } } },
      setHeaderOptions("Content-Type", PatchStrategy.MergePatch),
    );
    await seen;
    expect((await core.readNamespacedPod({ namespace: name, name: "task" })).metadata?.name).toBe("task");
    expect((await core.listNamespacedPod({ namespace: name })).items).toHaveLength(1);
    await core.deleteNamespacedPod({ namespace: name, name: "task", gracePeriodSeconds: 0 });
    await podGone(namespace, "task");
  });

  it("may not read secrets, config maps, other namespaces or nodes, delete collections, or create tokens", async () => {
    const { core, name } = namespace;
    const other = await cluster.namespace();
    const refused = [
      core.listNamespacedSecret({ namespace: name }),
      core.listNamespacedConfigMap({ namespace: name }),
      core.listNamespacedPod({ namespace: other.name }),
      core.createNamespacedPod({ namespace: other.name, body: pod("task") }),
      core.listPodForAllNamespaces(),
      core.listNode(),
      core.deleteCollectionNamespacedPod({ namespace: name }),
      core.createNamespacedServiceAccountToken({
        namespace: name,
        name: "default",
        body: { spec: { audiences: [] } },
      }),
    ];
    const codes = await Promise.all(
      refused.map((call) =>
        call.then(
          () => 200,
          ({ code }) => code,
        ),
      ),
    );
    expect(codes).toEqual(refused.map(() => 403));
  });

  it("has the rights that the test asks for", async () => {
    const rules = [{ apiGroups: [""], resources: ["events"], verbs: ["list"] }];
    const { core, name } = await cluster.namespace({ rules });
    expect((await core.listNamespacedEvent({ namespace: name })).items).toEqual([]);
    await expect(core.listNamespacedPod({ namespace: name })).rejects.toMatchObject({ code: 403 });
  });

  it("is subject to the Pod Security Standard of its namespace", async () => {
    const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
    const { core, name } = await cluster.namespace({ labels });
    const creation = core.createNamespacedPod({ namespace: name, body: pod("task") });
    await expect(creation).rejects.toMatchObject({ code: 403, body: expect.stringContaining("PodSecurity") });
  });
});

describe.skipIf(usesExistingCluster)("private cluster", () => {
  it("has its objects again after its API server was killed", async () => {
    const cluster = await privateCluster();
    const { core, name } = await cluster.namespace();
    await core.createNamespacedPod({ namespace: name, body: pod("task") });
    await cluster.down();
    await expect(core.readNamespacedPod({ namespace: name, name: "task" })).rejects.toThrow("fetch failed");
    await cluster.up();
    expect((await core.readNamespacedPod({ namespace: name, name: "task" })).metadata?.name).toBe("task");
  });
});

function pod(name: string): V1Pod {
  return { metadata: { name }, spec: { containers: [{ name: "task", image: "example/task:1" }] } };
}
