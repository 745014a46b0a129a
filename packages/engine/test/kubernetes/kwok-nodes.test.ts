import type { V1Pod } from "@kubernetes/client-node";
import { describe, expect, it } from "vitest";
import { privateCluster, usesExistingCluster } from "./kubernetes-cluster.ts";
import { kwokNodes, RUN_TIME } from "./kwok-nodes.ts";
import { watchPods } from "./pod-watch.ts";

const PODS = 1000;
const CONCURRENT = 16;

describe.skipIf(usesExistingCluster)("nodes of kwok", () => {
  it("run a thousand pods that the account of the executor creates", { timeout: 300_000 }, async () => {
    const cluster = await privateCluster();
    const namespace = await cluster.namespace();
    await kwokNodes(cluster, namespace);
    const { core, config, name } = namespace;
    const [running, succeeded] = [new Set<string>(), new Set<string>()];
    const { promise: all, resolve } = Promise.withResolvers<void>();
    const onPod = ({ metadata, status }: V1Pod) => {
      const uid = metadata?.uid ?? "";
      if (status?.phase !== "Pending") running.add(uid);
      if (status?.phase === "Succeeded") succeeded.add(uid);
      if (succeeded.size === PODS) resolve();
    };
    const watch = await watchPods(config, { onPod, onGone: () => {} }, name);
    const from = performance.now();
    const rate = () => Math.round((PODS * 1000) / (performance.now() - from));
    let next = 0;
    const create = async () => {
      for (let at = next++; at < PODS; at = next++)
        await core.createNamespacedPod({ namespace: name, body: pod(`task-${at}`) });
    };
    await Promise.all(Array.from({ length: CONCURRENT }, create));
    const created = rate();
    await all;
    console.log(`${PODS} pods: created ${created}/s, from creation to success ${rate()}/s`);
    expect(running.size).toBe(PODS);
    watch.stop();
  });
});

function pod(name: string): V1Pod {
  return {
    metadata: { name, annotations: { [RUN_TIME]: "1s" } },
    spec: { restartPolicy: "Never", containers: [{ name: "task", image: "example/task:1" }] },
  };
}
