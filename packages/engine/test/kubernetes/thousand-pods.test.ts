/** What a thousand pods cost the API server, and how fast the executor creates them; kwok plays their nodes. */
import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { get } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { KubernetesLauncher } from "../../src/execute/kubernetes/kubernetes-launcher.ts";
import { RemoteExecutor } from "../../src/execute/remote/remote-executor.ts";
import { LogFolder } from "../../src/log/log-folder.ts";
import { silentLogger } from "../../src/service/logger.ts";
import { Installation, manifestOf } from "../api/installation.ts";
import { ExecutorUnderTest } from "../execute/executor-under-test.ts";
import { type PrivateCluster, privateCluster, usesExistingCluster } from "./kubernetes-cluster.ts";
import { kwokNodes, RUN_TIME } from "./kwok-nodes.ts";
import { watchPods } from "./pod-watch.ts";

const PODS = 1_000;

const TEMPLATE = `
apiVersion: v1
kind: Pod
metadata: { annotations: { ${RUN_TIME}: 1s } }
spec: { containers: [{ name: task, image: "example/tasks:1" }] }
`;

describe.skipIf(usesExistingCluster)("a thousand pods", () => {
  it("are created with one request each, and removed with another", { timeout: 300_000 }, async () => {
    const cluster = await privateCluster();
    const namespace = await cluster.namespace();
    await kwokNodes(cluster, namespace);
    const [tw, under] = await Promise.all([Installation.open(), ExecutorUnderTest.start()]);
    const podTemplate = join(under.dir, "pod.yaml");
    await writeFile(podTemplate, TEMPLATE);
    const launcher = new KubernetesLauncher({
      ...{ podTemplate, executionUrl: "http://api:8080", namespaces: [], deletePods: "always" },
      ...{ pendingMs: 600_000, createRate: 10_000, kubeconfig: namespace.kubeconfigPath },
    });
    const { database, secretBox } = tw.options;
    const executor = new RemoteExecutor({
      ...{ name: "kubernetes", type: "kubernetes", database, launcher, parallelism: PODS, secretBox },
      ...{ logger: silentLogger, logs: new LogFolder(join(under.dir, "logs")), onCancels: () => {} },
    });
    await executor.start(() => {});
    await tw.addDag(manifestOf("wide", [{ taskId: "work" }]));
    const dagRunId = await tw.addRun("wide");
    const ids = Array.from({ length: PODS }, () => randomUUID());
    await tw.sql(
      `INSERT INTO task_instance (dag_run_id, task_id, map_index, state, attempt, pool, pool_slots, queue, priority_weight, operator, max_tries)
       SELECT $1, 'work', ord - 1, 'queued', id, 'default_pool', 1, 'default', 1, 'task', 0 FROM unnest($2::uuid[]) WITH ORDINALITY AS u(id, ord)`,
      [dagRunId, ids],
    );
    const [created, gone] = [new Set<string>(), new Set<string>()];
    const all = { created: Promise.withResolvers<void>(), gone: Promise.withResolvers<void>() };
    const watch = await watchPods(
      namespace.config,
      {
        onPod: ({ metadata }) => {
          if (created.add(metadata?.name ?? "").size === PODS) all.created.resolve();
        },
        onGone: ({ metadata }) => {
          if (gone.add(metadata?.name ?? "").size === PODS) all.gone.resolve();
        },
      },
      namespace.name,
    );
    const before = await requests(cluster);
    const began = performance.now();
    const rate = () => Math.round((PODS * 1_000) / (performance.now() - began));
    executor.submit(ids.map((id, mapIndex) => under.assignment("work", { id, dagRunId, mapIndex })));
    await all.created.promise;
    const createdPerSecond = rate();
    await all.gone.promise;
    const gonePerSecond = rate();
    const after = await requests(cluster);
    const made = (verb: string) => (after.get(verb) ?? 0) - (before.get(verb) ?? 0);
    console.log(
      `${PODS} pods: created ${createdPerSecond}/s, from creation to removal ${gonePerSecond}/s; ` +
        `${made("POST")} POST, ${made("DELETE")} DELETE, ${made("LIST")} LIST`,
    );
    expect(made("POST")).toBe(PODS);
    // kwok also sends one for each, like a kubelet.
    expect(made("DELETE")).toBeLessThanOrEqual(2 * PODS);
    watch.stop();
    await executor.stop();
    await under[Symbol.asyncDispose]();
  });
});

/** The calls about pods so far, by verb. */
async function requests(cluster: PrivateCluster): Promise<Map<string, number>> {
  const { caData = "" } = cluster.config.getCurrentCluster() ?? {};
  const token = cluster.config.getCurrentUser()?.token ?? "";
  const metrics = await new Promise<string>((resolve, reject) => {
    const options = {
      ca: Buffer.from(caData, "base64"),
      headers: { authorization: `Bearer ${token}` },
      agent: false as const,
    };
    get(`${cluster.url}/metrics`, options, (response) => resolve(text(response))).on("error", reject);
  });
  const counts = new Map<string, number>();
  const line = /^apiserver_request_total\{(.*)\} (\S+)$/gm;
  for (const [, labels = "", count] of metrics.matchAll(line)) {
    const {
      resource,
      subresource,
      verb = "",
    } = Object.fromEntries([...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]));
    if (resource === "pods" && subresource === "") counts.set(verb, (counts.get(verb) ?? 0) + Number(count));
  }
  return counts;
}
