import { describe, expect, it } from "vitest";
import { labelValue } from "./pod-labels.ts";
import { readPodTemplates } from "./pod-templates.ts";
import { type PodRequest, type PodTerms, taskPod } from "./task-pod.ts";

const TERMS: PodTerms = {
  templates: readPodTemplates(
    `
apiVersion: v1
kind: Pod
metadata:
  name: small
  labels: { team: data }
spec:
  restartPolicy: Always
  containers:
    - name: task
      image: tasks:1
      args: ["something"]
      env:
        - { name: TRADEWIND_URL, value: "http://wrong" }
        - { name: A, value: "1" }
    - { name: proxy, image: "proxy:1", args: ["--quiet"] }
---
apiVersion: v1
kind: Pod
metadata:
  name: gpu
  annotations: { tradewind.dev/queues: gpu, note: kept }
spec:
  enableServiceLinks: true
  containers: [{ name: task, image: "gpu:1" }]
`,
    "pod.yaml",
  ),
  owner: { installation: "0a1b2c", executor: "kubernetes" },
  namespaces: ["jobs", "gpu-jobs"],
  executionUrl: "http://api:8080",
};

const REQUEST: PodRequest = {
  id: "6f9619ff-8b86-4011-b42d-00c04fc964ff",
  queue: "default",
  config: null,
  task: {
    kind: "attempt",
    dagId: "etl",
    runId: "scheduled__2026-01-01T00:00:00Z",
    taskId: "load",
    mapIndex: 3,
    tryNumber: 2,
  },
  launchToken: "twl_token",
};

const made = (config: PodRequest["config"], queue = "default") =>
  taskPod({ ...REQUEST, queue, config }, TERMS);
const task = (config: PodRequest["config"]) => made(config).pod.spec?.containers[0];

describe("the pod of an assignment", () => {
  it("is named after the assignment, in the default namespace", () => {
    const { name, namespace, pod } = made(null);
    expect([name, namespace]).toEqual([`tradewind-${REQUEST.id}`, "jobs"]);
    expect(pod.metadata).toMatchObject({ name, namespace });
  });

  it("has labels by which it is found, and annotations with the full ids", () => {
    const { annotations, labels } = made(null).pod.metadata ?? {};
    expect(labels).toEqual({
      team: "data",
      "tradewind.dev/installation": "0a1b2c",
      "tradewind.dev/executor": "kubernetes",
      "tradewind.dev/assignment": REQUEST.id,
      "tradewind.dev/kind": "attempt",
      "tradewind.dev/dag": "etl",
      "tradewind.dev/run": labelValue("scheduled__2026-01-01T00:00:00Z"),
      "tradewind.dev/task": "load",
      "tradewind.dev/try": "2",
      "tradewind.dev/map-index": "3",
    });
    expect(annotations).toMatchObject({ "tradewind.dev/run": "scheduled__2026-01-01T00:00:00Z" });
  });

  it("runs the worker of the assignment once, with its address and token", () => {
    const { pod } = made(null);
    expect(pod.spec?.restartPolicy).toBe("Never");
    expect(pod.spec?.containers[0]).toMatchObject({
      args: ["execute", REQUEST.id],
      env: [
        { name: "A", value: "1" },
        { name: "TRADEWIND_URL", value: "http://api:8080" },
        { name: "TRADEWIND_LAUNCH_TOKEN", value: "twl_token" },
      ],
      terminationMessagePolicy: "FallbackToLogsOnError",
    });
    expect(pod.spec?.containers[1]).toEqual({ name: "proxy", image: "proxy:1", args: ["--quiet"] });
  });

  it("has neither the variables of services nor the token of an account, unless the template wants them", () => {
    expect(made(null).pod.spec).toMatchObject({
      enableServiceLinks: false,
      automountServiceAccountToken: false,
    });
    expect(made({ template: "gpu" }).pod.spec).toMatchObject({ enableServiceLinks: true });
  });

  it("has the template of its queue, or the one that its task names", () => {
    const image = (config: PodRequest["config"], queue: string) =>
      made(config, queue).pod.spec?.containers[0]?.image;
    expect(image(null, "other")).toBe("tasks:1");
    expect(image(null, "gpu")).toBe("gpu:1");
    expect(image({ template: "small" }, "gpu")).toBe("tasks:1");
    expect(made(null, "gpu").pod.metadata?.annotations).toMatchObject({ note: "kept" });
    expect(made(null, "gpu").pod.metadata?.annotations).not.toHaveProperty("tradewind.dev/queues");
  });

  it("takes image, resources, labels, annotations and service account from executorConfig", () => {
    const resources = { requests: { cpu: "2" } };
    const config = {
      image: "own:2",
      resources,
      labels: { a: "b" },
      annotations: { c: "d" },
      serviceAccount: "etl",
    };
    const { metadata, spec } = made(config).pod;
    expect(spec?.containers[0]).toMatchObject({ name: "task", image: "own:2", resources });
    expect(spec?.serviceAccountName).toBe("etl");
    expect(metadata).toMatchObject({ labels: { team: "data", a: "b" }, annotations: { c: "d" } });
  });

  it("lets podOverride have the last word, except on what identifies and starts the pod", () => {
    const podOverride = {
      metadata: { name: "mine", namespace: "gpu-jobs", labels: { "tradewind.dev/assignment": "x" } },
      spec: {
        restartPolicy: "Always",
        containers: [{ name: "task", image: "own:3", args: ["sleep"], command: ["tw"] }],
      },
    };
    const { name, namespace, pod } = made({ image: "own:2", podOverride });
    expect([name, namespace]).toEqual([`tradewind-${REQUEST.id}`, "gpu-jobs"]);
    expect(pod.metadata?.labels?.["tradewind.dev/assignment"]).toBe(REQUEST.id);
    expect(pod.spec?.restartPolicy).toBe("Never");
    expect(pod.spec?.containers[0]).toMatchObject({
      image: "own:3",
      args: ["execute", REQUEST.id],
      command: ["tw"],
    });
  });

  it.each([
    [
      { template: "huge" },
      'executorConfig.template names the pod template "huge", which does not exist. The templates of TRADEWIND_POD_TEMPLATE are: small, gpu.',
    ],
    [{ imgae: "x" }, "executorConfig.imgae is unknown to the Kubernetes executor. Use: template, image"],
    [{ podOverride: [] }, "executorConfig.podOverride must be a pod"],
    [
      { podOverride: { spec: { volumes: [{}] } } },
      "The pod cannot be made: podOverride.spec.volumes[0] has no name.",
    ],
    [
      { podOverride: { metadata: { namespace: "prod" } } },
      'The pod cannot be created in namespace "prod", because only these are configured: jobs, gpu-jobs. Add it to TRADEWIND_KUBERNETES_NAMESPACE.',
    ],
  ])("is refused for %j", (config, message) => {
    expect(() => task(config)).toThrow(message);
  });
});

it("makes label values that Kubernetes accepts, different for different texts", () => {
  const long = "x".repeat(80);
  const texts = [
    "etl",
    "",
    "a b",
    "a/b",
    "_a",
    "-",
    "manual__1",
    "é",
    long,
    `${long}y`,
    "a.",
    "x".repeat(63),
  ];
  const values = texts.map(labelValue);
  for (const value of values) expect(value).toMatch(/^(?:[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?)?$/);
  expect(new Set(values).size).toBe(texts.length);
  expect(values.slice(0, 2)).toEqual(["etl", ""]);
});
