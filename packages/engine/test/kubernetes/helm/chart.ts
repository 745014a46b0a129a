/** The chart of deploy/helm, by the real Helm. */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { parseAllDocuments } from "yaml";
import { afterFile } from "../../support/after-file.ts";
import { helmBinary } from "../kubernetes-binaries.ts";

const run = promisify(execFile);
export const CHART = join(import.meta.dirname, "../../../../../deploy/helm/tradewind");

export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly rules?: unknown;
}

/** Sets of values that together use each feature of the chart. */
export const VALUE_SETS = {
  "the defaults": {},
  "workers that KEDA scales": {
    executor: "queue",
    workerDefaults: { drainSeconds: 600 },
    workers: [
      { name: "default", queues: ["default", "it's"], concurrency: 4 },
      {
        name: "gpu",
        queues: ["gpu"],
        concurrency: 1,
        drainSeconds: 0,
        autoscaling: { enabled: true, minReplicas: 0 },
      },
    ],
    triggerer: { capacity: 1_000, queues: ["default", "slow"], autoscaling: { enabled: true } },
  },
  "metrics, by which KEDA scales workers": {
    executor: "queue",
    workers: [{ name: "default", queues: ["default", 'a.b"c'], autoscaling: { enabled: true } }],
    triggerer: { autoscaling: { enabled: true } },
    metrics: {
      enabled: true,
      interval: "30s",
      labels: { release: "prometheus" },
      prometheusUrl: "http://prometheus.monitoring:9090",
    },
    networkPolicy: {
      apiFrom: [{ ipBlock: { cidr: "10.0.0.0/8" } }],
      metricsFrom: [{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "monitoring" } } }],
    },
  },
  "a pod per task": {
    executor: "kubernetes",
    kubernetes: {
      podTemplate: "apiVersion: v1\nkind: Pod\nspec: { containers: [{ name: task, image: example/task }] }",
    },
  },
  "volumes, places and a closed API": {
    image: { repository: "registry.example/tradewind", tag: "1.2.3" },
    imagePullSecrets: [{ name: "registry" }],
    env: { TRADEWIND_LOG_LEVEL: "debug" },
    envFrom: [{ secretRef: { name: "s3-account" } }],
    dags: { volume: { persistentVolumeClaim: { claimName: "dags" } } },
    sharedVolume: { persistentVolumeClaim: { claimName: "shared" } },
    scheduler: {
      env: { TRADEWIND_LOG_LEVEL: "warn" },
      nodeSelector: { disk: "ssd" },
      tolerations: [{ key: "tasks", operator: "Exists" }],
      affinity: { podAntiAffinity: {} },
      podAnnotations: { "example.com/owner": "data" },
    },
    api: { publicUrl: "https://tradewind.example", service: { type: "NodePort", port: 80 } },
    networkPolicy: { apiFrom: [{ ipBlock: { cidr: "10.0.0.0/8" } }] },
  },
} as const;

/** @param options.kubeconfig Of the cluster; without it, Helm must not need one. @throws Error with Helm's message. */
export async function helm(
  args: readonly string[],
  options: { readonly kubeconfig?: string; readonly values?: object } = {},
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "tw-helm-"));
  folders.push(folder);
  const values = join(folder, "values.yaml");
  // JSON is YAML.
  await writeFile(values, JSON.stringify(options.values ?? {}));
  const withValues = options.values === undefined ? args : [...args, "--values", values];
  const { stdout } = await run(await helmBinary(), withValues, {
    env: { PATH: process.env.PATH, HOME: folder, KUBECONFIG: options.kubeconfig ?? join(folder, "none") },
    maxBuffer: 2 ** 24,
  });
  return stdout;
}

export async function render(values: object): Promise<readonly KubernetesObject[]> {
  const text = await helm(["template", "tw", CHART, "--namespace", "jobs"], { values });
  return parseAllDocuments(text).flatMap((document) => {
    if (document.errors.length > 0) throw document.errors[0];
    const object = document.toJS() as KubernetesObject | null;
    return object === null ? [] : [object];
  });
}

const folders: string[] = [];

afterFile(async () => {
  await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true, force: true })));
});
