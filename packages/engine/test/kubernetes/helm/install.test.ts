/** The chart in a real API server. No pod runs: it has no controllers, so a test plays that of the migration's Job. */
import {
  AppsV1Api,
  BatchV1Api,
  PatchStrategy,
  setHeaderOptions,
  type V1Job,
  Watch,
} from "@kubernetes/client-node";
import { beforeAll, describe, expect, it } from "vitest";
import { type PrivateCluster, privateCluster, usesExistingCluster } from "../kubernetes-cluster.ts";
import { CHART, helm, VALUE_SETS } from "./chart.ts";
import { installDefinitions } from "./definitions.ts";

const JOB = "tw-tradewind-migration";

// It installs types of objects, which belong to the whole cluster.
describe.skipIf(usesExistingCluster)("chart in a cluster", () => {
  let cluster: PrivateCluster;
  let jobs: BatchV1Api;
  let apps: AppsV1Api;

  beforeAll(async () => {
    cluster = await privateCluster();
    jobs = cluster.config.makeApiClient(BatchV1Api);
    apps = cluster.config.makeApiClient(AppsV1Api);
    await installDefinitions(cluster.kubeconfigPath);
    // At the first run, Go downloads their modules.
  }, 300_000);

  const release = (command: readonly string[], namespace: string, values?: object) =>
    helm([...command, "--namespace", namespace], {
      kubeconfig: cluster.kubeconfigPath,
      ...(values && { values }),
    });
  const deployments = async (namespace: string) =>
    (await apps.listNamespacedDeployment({ namespace })).items.map(({ metadata }) => metadata?.name ?? "");

  /** Resolves when the release's Job exists; `end` ends it. */
  const migration = async (namespace: string) => {
    const created = await job(namespace);
    return { created, end: (isSuccess: boolean) => endJob(namespace, isSuccess) };
  };

  async function job(namespace: string): Promise<V1Job> {
    const found = Promise.withResolvers<V1Job>();
    const watch = await new Watch(cluster.config).watch(
      `/apis/batch/v1/namespaces/${namespace}/jobs`,
      {},
      (_, object: V1Job) => {
        if (object.status?.conditions === undefined && object.metadata?.deletionTimestamp === undefined)
          found.resolve(object);
      },
      (error) => found.reject(error ?? new Error("the watch has ended")),
    );
    return found.promise.finally(() => watch.abort());
  }

  async function endJob(namespace: string, isSuccess: boolean): Promise<void> {
    const now = new Date().toISOString();
    const types = isSuccess ? ["SuccessCriteriaMet", "Complete"] : ["FailureTarget", "Failed"];
    const conditions = types.map((type) => ({ type, status: "True", lastTransitionTime: now }));
    const ended = isSuccess ? { succeeded: 1, completionTime: now } : { failed: 1 };
    const status = { startTime: now, uncountedTerminatedPods: {}, conditions, ...ended };
    await jobs.patchNamespacedJobStatus(
      { namespace, name: JOB, body: { status } },
      setHeaderOptions("Content-Type", PatchStrategy.MergePatch),
    );
  }

  it.each(Object.entries(VALUE_SETS))("is accepted with %s, and upgraded", async (_, values) => {
    const { name } = await cluster.namespace();
    const first = migration(name).then(({ end }) => end(true));
    await release(["install", "tw", CHART, "--wait=hookOnly"], name, values);
    await first;
    expect(await deployments(name)).toEqual(
      expect.arrayContaining(["tw-tradewind-api", "tw-tradewind-scheduler"]),
    );
    const second = migration(name).then(({ end }) => end(true));
    const image = { image: { tag: "9.9.9" } };
    await release(["upgrade", "tw", CHART, "--wait=hookOnly"], name, { ...values, ...image });
    await second;
    const { items } = await apps.listNamespacedDeployment({ namespace: name });
    const images = items.map(({ spec }) => spec?.template.spec?.containers[0]?.image);
    expect(images).toEqual(images.map(() => expect.stringMatching(/^tradewind:9\.9\.9$/)));
  });

  it("replaces no service before the database is migrated, and none if that fails", async () => {
    const { name } = await cluster.namespace();
    const started = migration(name);
    const installed = release(["install", "tw", CHART, "--wait=hookOnly"], name, {});
    const rejected = expect(installed).rejects.toThrow(/pre-install/);
    const { created, end } = await started;
    expect(created.spec?.template.spec?.containers[0]?.args).toEqual(["db", "migrate"]);
    expect(await deployments(name)).toEqual([]);
    await end(false);
    await rejected;
    expect(await deployments(name)).toEqual([]);
  });

  it("has pods of the restricted Pod Security Standard", async () => {
    const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
    const { name } = await cluster.namespace({ labels });
    const values = VALUE_SETS["workers that KEDA scales"];
    await release(["install", "tw", CHART, "--no-hooks"], name, values);
    const { items } = await apps.listNamespacedDeployment({ namespace: name });
    expect(items.length).toBe(6);
    for (const { metadata, spec } of items) {
      const body = {
        metadata: { ...spec?.template.metadata, name: metadata?.name ?? "" },
        spec: spec!.template.spec!,
      };
      await cluster.core.createNamespacedPod({ namespace: name, body, dryRun: "All" });
    }
  });
});
