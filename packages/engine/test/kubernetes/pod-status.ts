import type { V1ContainerStatus, V1Pod, V1PodCondition, V1PodStatus } from "@kubernetes/client-node";
import type { PodEnd, WaitingReason } from "./agent-pod.ts";
import { NODE_IP } from "./container-env.ts";
import type { ContainerProcess } from "./container-process.ts";

interface PodProcesses {
  readonly startTime: Date;
  readonly init: readonly ContainerProcess[];
  readonly containers: readonly ContainerProcess[];
}

interface PodFacts {
  readonly waitingReason: WaitingReason | undefined;
  readonly end: PodEnd | undefined;
  /** No process is left, and none will be started. */
  readonly hasEnded: boolean;
}

/** The status that a kubelet writes of a pod that is never restarted. */
export function podStatus(pod: V1Pod, processes: PodProcesses, facts: PodFacts): V1PodStatus {
  const { hasEnded, end } = facts;
  const isInitialized = processes.init.every(({ exitCode }) => exitCode === 0);
  const initContainerStatuses = processes.init.map((container) => container.status());
  const containerStatuses = processes.containers.map((container) => container.status());
  const first = isInitialized ? containerStatuses : initContainerStatuses;
  for (const status of first) if (status.state?.waiting) status.state = { waiting: waiting(facts, status) };
  if (hasEnded && isInitialized) containerStatuses.forEach(markLost);
  const phase = phaseOf(isInitialized, containerStatuses, facts);
  const isReady = phase === "Running" && containerStatuses.every(({ ready }) => ready);
  const reason =
    phase === "Succeeded" ? "PodCompleted" : phase === "Failed" ? "PodFailed" : notReady(isReady);
  const disruption =
    hasEnded && end?.isDisruption
      ? [condition(pod, "DisruptionTarget", true, "TerminationByKubelet", end.message)]
      : [];
  return {
    observedGeneration: pod.metadata?.generation,
    phase,
    ...(phase === "Failed" ? { reason: end?.reason, message: end?.reason && end.message } : {}),
    startTime: processes.startTime,
    hostIP: NODE_IP,
    hostIPs: [{ ip: NODE_IP }],
    podIP: NODE_IP,
    podIPs: [{ ip: NODE_IP }],
    initContainerStatuses,
    containerStatuses,
    conditions: [
      condition(pod, "PodReadyToStartContainers", !hasEnded),
      condition(pod, "Initialized", isInitialized, isInitialized ? undefined : "ContainersNotInitialized"),
      condition(pod, "ContainersReady", isReady, reason),
      condition(pod, "Ready", isReady, reason),
      ...disruption,
    ],
  };
}

function notReady(isReady: boolean): string | undefined {
  return isReady ? undefined : "ContainersNotReady";
}

function waiting({ waitingReason }: PodFacts, { state }: V1ContainerStatus) {
  if (waitingReason !== undefined) return { ...waitingReason };
  if (state?.waiting?.reason === "PodInitializing") return { reason: "ContainerCreating" };
  return state?.waiting;
}

/** A kubelet reports a container without a known end as lost. */
function markLost(status: V1ContainerStatus): void {
  if (status.state?.terminated) return;
  const message = "The container could not be located when the pod was terminated";
  status.state = { terminated: { exitCode: 137, reason: "ContainerStatusUnknown", message } };
}

function phaseOf(
  isInitialized: boolean,
  statuses: readonly V1ContainerStatus[],
  { hasEnded, end }: PodFacts,
): string {
  if (hasEnded) {
    const isSuccess = isInitialized && statuses.every(({ state }) => state?.terminated?.exitCode === 0);
    return isSuccess && end?.reason === undefined ? "Succeeded" : "Failed";
  }
  return isInitialized && statuses.every(({ state }) => !state?.waiting) ? "Running" : "Pending";
}

function condition(
  pod: V1Pod,
  type: string,
  isTrue: boolean,
  reason?: string,
  message?: string,
): V1PodCondition {
  const status = isTrue ? "True" : "False";
  const former = pod.status?.conditions?.find((each) => each.type === type);
  const lastTransitionTime =
    (former?.status === status ? former.lastTransitionTime : undefined) ?? new Date();
  return { type, status, reason, message, lastTransitionTime };
}
