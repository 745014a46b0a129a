import type { V1ContainerState, V1ContainerStatus, V1Pod, V1PodStatus } from "@kubernetes/client-node";
import { describe, expect, it } from "vitest";
import { podVerdict } from "./pod-verdict.ts";

const status = (state: V1ContainerState, name = "task"): V1ContainerStatus => {
  return { name, image: "tasks:1", imageID: "", ready: false, restartCount: 0, state };
};
const pod = (given: V1PodStatus, metadata: V1Pod["metadata"] = {}): V1Pod => ({
  metadata,
  spec: {
    containers: [
      { name: "task", image: "tasks:1", resources: { limits: { memory: "512Mi" } } },
      { name: "proxy", image: "proxy:1" },
    ],
    initContainers: [{ name: "fetch", image: "curl:1" }],
  },
  status: given,
});
const ended = (exitCode: number, more: object = {}) => status({ terminated: { exitCode, ...more } });
const verdict = (given: V1PodStatus) => podVerdict(pod(given));

describe("a pod that is not ended", () => {
  it.each<[string, V1PodStatus]>([
    ["without a status", {}],
    ["without a node", { phase: "Pending" }],
    [
      "that is being prepared",
      { phase: "Pending", containerStatuses: [status({ waiting: { reason: "ContainerCreating" } })] },
    ],
    [
      "whose init container runs",
      { phase: "Pending", initContainerStatuses: [status({ running: {} }, "fetch")] },
    ],
  ])("is pending %s", (_, given) => {
    expect(verdict(given)).toMatchObject({ kind: "pending" });
    expect(verdict(given)).not.toHaveProperty("trouble");
  });

  it("says why no node can take it", () => {
    const condition = {
      type: "PodScheduled",
      status: "False",
      reason: "Unschedulable",
      message: "0/3 nodes: no GPU",
    };
    expect(verdict({ phase: "Pending", conditions: [condition] })).toEqual({
      kind: "pending",
      why: "no node can take the pod: Unschedulable: 0/3 nodes: no GPU",
    });
  });

  it.each([
    ["InvalidImageName", 0],
    ["ErrImageNeverPull", 0],
    ["ErrImagePull", 10_000],
    ["ImagePullBackOff", 10_000],
    ["CreateContainerConfigError", 10_000],
    ["CreateContainerError", 10_000],
  ])("is in trouble when a container waits with %s", (reason, afterMs) => {
    for (const name of ["task", "proxy"]) {
      const containerStatuses = [status({ waiting: { reason, message: "not found" } }, name)];
      const message = `Container "${name}" (image ${name === "task" ? "tasks:1" : "proxy:1"}) cannot start: ${reason}: not found`;
      expect(verdict({ phase: "Pending", containerStatuses })).toMatchObject({
        kind: "pending",
        trouble: { afterMs, end: { kind: "failed", code: "POD_NOT_STARTED", message } },
      });
    }
  });

  it("is in trouble when an init container cannot start", () => {
    const initContainerStatuses = [status({ waiting: { reason: "ErrImagePull" } }, "fetch")];
    const containerStatuses = [status({ waiting: { reason: "PodInitializing" } })];
    expect(verdict({ phase: "Pending", initContainerStatuses, containerStatuses })).toMatchObject({
      trouble: { end: { message: expect.stringContaining('Container "fetch" (image curl:1)') } },
    });
  });

  it("runs as soon as its task container runs, independent of the others", () => {
    const sidecar = status({ waiting: { reason: "ErrImagePull" } }, "proxy");
    expect(verdict({ phase: "Pending", containerStatuses: [sidecar, status({ running: {} })] })).toEqual({
      kind: "running",
    });
  });

  it("may take the grace period of its deletion, and no longer", () => {
    const metadata = { deletionTimestamp: new Date(), deletionGracePeriodSeconds: 60 };
    const running = pod({ phase: "Running", containerStatuses: [status({ running: {} })] }, metadata);
    const trouble = { afterMs: 70_000, end: { kind: "lost" } };
    expect(podVerdict(running)).toMatchObject({ kind: "running", trouble });
    expect(podVerdict(pod({ phase: "Pending" }, metadata))).toMatchObject({ kind: "pending", trouble });
  });
});

it("waits a moment for the reason of the pod when only the task container has ended", () => {
  const containerStatuses = [
    status({ running: {} }, "proxy"),
    ended(1, { reason: "Error", message: "no token" }),
  ];
  expect(verdict({ phase: "Running", containerStatuses })).toMatchObject({
    kind: "running",
    trouble: { afterMs: 3_000, end: { kind: "failed", message: expect.stringContaining("no token") } },
  });
});

describe("an ended pod", () => {
  it.each<[string, V1PodStatus]>([
    ["that succeeded", { phase: "Succeeded", containerStatuses: [ended(0)] }],
    [
      "whose sidecar still runs",
      { phase: "Running", containerStatuses: [status({ running: {} }, "proxy"), ended(0)] },
    ],
    [
      "whose sidecar failed after the task",
      { phase: "Failed", containerStatuses: [status({ terminated: { exitCode: 1 } }, "proxy"), ended(0)] },
    ],
  ])("has reported its task %s", (_, given) => {
    expect(verdict(given)).toMatchObject({
      kind: "ended",
      isSuccess: true,
      end: { kind: "failed", code: "POD_FAILED" },
    });
  });

  it.each<[string, V1PodStatus, string]>([
    [
      "it was evicted",
      { phase: "Failed", reason: "Evicted", message: "The node was low on resource: memory. " },
      "its pod ended: Evicted: The node was low on resource: memory.",
    ],
    [
      "its node shut down",
      {
        phase: "Failed",
        reason: "Terminated",
        message: "Pod was terminated in response to imminent node shutdown.",
      },
      "its pod ended: Terminated",
    ],
    [
      "its node had no room",
      { phase: "Failed", reason: "OutOfcpu", message: "Node didn't have enough resource" },
      "its pod ended: OutOfcpu",
    ],
    [
      "its node is lost",
      { phase: "Running", reason: "NodeLost", message: "Node n1 is unresponsive" },
      "its node is lost: Node n1 is unresponsive",
    ],
    [
      "it was preempted",
      {
        phase: "Failed",
        conditions: [
          {
            type: "DisruptionTarget",
            status: "True",
            reason: "PreemptionByScheduler",
            message: "preempting",
          },
        ],
        containerStatuses: [ended(137)],
      },
      "its pod was disrupted: PreemptionByScheduler: preempting",
    ],
    [
      "it was killed",
      { phase: "Failed", containerStatuses: [ended(137, { reason: "Error" })] },
      'container "task" ended with exit code 137 (Error)',
    ],
    [
      "it was terminated",
      { phase: "Failed", containerStatuses: [ended(143, { reason: "Error" })] },
      'container "task" ended with exit code 143 (Error)',
    ],
    ["it failed without a trace", { phase: "Failed" }, "its pod failed: no reason"],
  ])("is lost when %s", (_, given, reason) => {
    expect(verdict(given)).toMatchObject({ kind: "ended", isSuccess: false, end: { kind: "lost" } });
    expect((podVerdict(pod(given)) as { end: { reason: string } }).end.reason).toContain(reason);
  });

  it.each<[string, V1PodStatus, string, string]>([
    [
      "it ran out of memory",
      { phase: "Failed", containerStatuses: [ended(137, { reason: "OOMKilled" })] },
      "TASK_OUT_OF_MEMORY",
      'Container "task" exceeded its memory limit of 512Mi (OOMKilled)',
    ],
    [
      "it was evicted for its own use of the disk",
      {
        phase: "Failed",
        reason: "Evicted",
        message: "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ",
      },
      "POD_FAILED",
      "The pod was evicted: Pod ephemeral local storage usage exceeds",
    ],
    [
      "it exceeded its own deadline",
      {
        phase: "Failed",
        reason: "DeadlineExceeded",
        message: "Pod was active on the node longer than the specified deadline",
      },
      "POD_FAILED",
      "The pod exceeded its activeDeadlineSeconds: Pod was active",
    ],
    [
      "its command does not exist",
      {
        phase: "Failed",
        containerStatuses: [ended(128, { reason: "StartError", message: "exec: no such file" })],
      },
      "POD_FAILED",
      'The pod failed: container "task" ended with exit code 128 (StartError): exec: no such file',
    ],
    [
      "its worker was rejected",
      {
        phase: "Failed",
        containerStatuses: [
          ended(1, { reason: "Error", message: "error: the API rejects the launch token" }),
        ],
      },
      "POD_FAILED",
      "exit code 1 (Error): error: the API rejects the launch token",
    ],
    [
      "its init container failed",
      {
        phase: "Failed",
        initContainerStatuses: [status({ terminated: { exitCode: 6, reason: "Error" } }, "fetch")],
        containerStatuses: [status({ waiting: { reason: "PodInitializing" } })],
      },
      "POD_FAILED",
      'container "fetch" ended with exit code 6',
    ],
  ])("has failed when %s", (_, given, code, message) => {
    expect(verdict(given)).toMatchObject({ kind: "ended", isSuccess: false, end: { kind: "failed", code } });
    expect((podVerdict(pod(given)) as { end: { message: string } }).end.message).toContain(message);
  });
});
