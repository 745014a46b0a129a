/**
 * What the status of a pod means for its assignment. A pure function: the same status always means the same, however often
 * and by whichever scheduler it is read.
 *
 * A failure is the task's, or that of its settings: an image that does not exist, a container that exceeds its memory. It
 * counts as a try. A loss has a cause outside of the task: an eviction, a lost node, a deleted pod. The task starts again.
 */
import type { V1ContainerStatus, V1Pod } from "@kubernetes/client-node";
import { TASK_CONTAINER } from "./pod-templates.ts";

export type PodEnd =
  | { readonly kind: "lost"; readonly reason: string }
  | { readonly kind: "failed"; readonly code: PodFailure; readonly message: string };

type PodFailure = "POD_FAILED" | "POD_NOT_STARTED" | "TASK_OUT_OF_MEMORY";

export type PodVerdict =
  /** `trouble`: what the assignment comes to if this lasts for `afterMs`. Without it, the pod is about to start. */
  | { readonly kind: "pending"; readonly why: string; readonly trouble?: PodTrouble }
  | { readonly kind: "running"; readonly trouble?: PodTrouble }
  /** `isSuccess`: the worker has reported everything; `end` counts only if it has not. */
  | { readonly kind: "ended"; readonly isSuccess: boolean; readonly end: PodEnd };

interface PodTrouble {
  readonly afterMs: number;
  readonly end: PodEnd;
}

/** Reasons why a container cannot be started, which seldom pass by themselves; how long they may last. */
const FATAL_WAITS: ReadonlyMap<string, number> = new Map([
  ["InvalidImageName", 0],
  ["ErrImageNeverPull", 0],
  // A registry may fail once. A secret or a config map may be created just after the pod.
  ["ErrImagePull", 10_000],
  ["ImagePullBackOff", 10_000],
  ["ImageInspectError", 10_000],
  ["RegistryUnavailable", 10_000],
  ["CreateContainerConfigError", 10_000],
  ["CreateContainerError", 10_000],
  ["RunContainerError", 10_000],
]);

/** Reasons of a failed pod that are no fault of what ran in it. */
const LOST_REASONS =
  /^(?:Evicted|NodeLost|NodeShutdown|Shutdown|Terminated|Preempting|NodeAffinity|UnexpectedAdmissionError|OutOf\w+|Outof\w+)$/;
/** An eviction for what the pod itself has used. */
const OWN_USE = /exceed(?:s|ed) (?:the|its|total)/i;
/** SIGKILL and SIGTERM, as exit codes; and that of a worker that was stopped before its task ended. */
const KILLED: ReadonlySet<number> = new Set([137, 143, 130]);
/** How long after its task container a pod may take to end. */
const PHASE_MS = 3_000;
/** After the grace period of a deletion, the node has this long to report the end. */
const DELETION_MARGIN_MS = 10_000;

export function podVerdict({ metadata, spec, status = {} }: V1Pod): PodVerdict {
  const { phase = "Pending" } = status;
  const task = status.containerStatuses?.find(({ name }) => name === TASK_CONTAINER);
  const isTaskOver = task?.state?.terminated !== undefined && task.state.terminated !== null;
  if (phase === "Succeeded") return SUCCEEDED;
  // Containers beside the task may still run.
  if (isTaskOver && task.state?.terminated?.exitCode === 0) return SUCCEEDED;
  if (phase === "Failed") return { kind: "ended", isSuccess: false, end: failedEnd({ spec, status }, task) };
  // The status of the pod says more, e.g. that it was evicted. While other containers run, there will be none.
  if (isTaskOver)
    return { kind: "running", trouble: { afterMs: PHASE_MS, end: failedEnd({ spec, status }, task) } };
  if (status.reason === "NodeLost")
    return { kind: "ended", isSuccess: false, end: lost(`its node is lost${said(status.message)}`) };
  const trouble = metadata?.deletionTimestamp
    ? deletion(metadata.deletionGracePeriodSeconds ?? 30)
    : undefined;
  if (task?.state?.running) return { kind: "running", ...(trouble && { trouble }) };
  return pending({ spec, status }, trouble);
}

const SUCCEEDED: PodVerdict = {
  kind: "ended",
  isSuccess: true,
  end: failed(
    "POD_FAILED",
    `The pod ended without a report of its task. Check that its container "${TASK_CONTAINER}" runs "tradewind execute": do not set its args.`,
  ),
};

function pending({ spec, status = {} }: V1Pod, deleted: PodTrouble | undefined): PodVerdict {
  const all = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
  const waiting = all.flatMap(({ image, name, state }) =>
    state?.waiting ? [{ ...state.waiting, image, name }] : [],
  );
  const stuck = waiting.find(({ reason = "" }) => FATAL_WAITS.has(reason));
  if (stuck !== undefined) {
    const { name, reason = "" } = stuck;
    const image = imageOf(spec, name) ?? stuck.image;
    const message = `Container "${name}" (image ${image}) cannot start: ${reason}${said(stuck.message)}`;
    const trouble = { afterMs: FATAL_WAITS.get(reason) ?? 0, end: failed("POD_NOT_STARTED", message) };
    return { kind: "pending", why: message, trouble: deleted ?? trouble };
  }
  const scheduled = status.conditions?.find(({ type }) => type === "PodScheduled");
  const [first] = waiting;
  const why =
    scheduled?.status === "False"
      ? `no node can take the pod: ${scheduled.reason ?? "not scheduled"}${said(scheduled.message)}`
      : first === undefined
        ? "the pod waits for a node"
        : `container "${first.name}" waits: ${first.reason ?? "no reason"}${said(first.message)}`;
  return { kind: "pending", why, ...(deleted && { trouble: deleted }) };
}

/** The end of a pod that did not start in time. */
export function notStarted(why: string, waited: string): PodEnd {
  return failed("POD_NOT_STARTED", `The pod did not start within ${waited}: ${why}`);
}

function failedEnd({ spec, status = {} }: V1Pod, task: V1ContainerStatus | undefined): PodEnd {
  const { conditions = [], message, reason = "" } = status;
  if (reason === "Evicted" && OWN_USE.test(message ?? ""))
    return failed("POD_FAILED", `The pod was evicted${said(message)}`);
  if (LOST_REASONS.test(reason)) return lost(`its pod ended: ${reason}${said(message)}`);
  const disruption = conditions.find((each) => each.type === "DisruptionTarget" && each.status === "True");
  if (disruption) return lost(`its pod was disrupted: ${disruption.reason ?? ""}${said(disruption.message)}`);
  if (reason === "DeadlineExceeded")
    return failed("POD_FAILED", `The pod exceeded its activeDeadlineSeconds${said(message)}`);
  const all = [...(task ? [task] : []), ...(status.initContainerStatuses ?? [])];
  const over = all.find(({ state }) => state?.terminated && state.terminated.exitCode !== 0);
  const terminated = over?.state?.terminated;
  if (over === undefined || !terminated)
    return lost(`its pod failed: ${reason || "no reason"}${said(message)}`);
  const { exitCode, reason: why = "Error", message: words } = terminated;
  if (why === "OOMKilled") {
    const limit = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].find(
      ({ name }) => name === over.name,
    )?.resources?.limits?.["memory"];
    const much = limit === undefined ? "ran out of memory" : `exceeded its memory limit of ${limit}`;
    return failed("TASK_OUT_OF_MEMORY", `Container "${over.name}" ${much} (OOMKilled)${said(words)}`);
  }
  const how = `container "${over.name}" ended with exit code ${exitCode} (${why})`;
  if (KILLED.has(exitCode)) return lost(how);
  return failed("POD_FAILED", `The pod failed: ${how}${said(words)}`);
}

function deletion(graceSeconds: number): PodTrouble {
  return {
    afterMs: graceSeconds * 1_000 + DELETION_MARGIN_MS,
    end: lost("its pod is deleted, and its node does not answer"),
  };
}

function imageOf(spec: V1Pod["spec"], container: string): string | undefined {
  const all = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
  return all.find(({ name }) => name === container)?.image;
}

function lost(reason: string): PodEnd {
  return { kind: "lost", reason };
}

function failed(code: PodFailure, message: string): PodEnd {
  return { kind: "failed", code, message };
}

function said(message: string | undefined): string {
  const words = message?.trim() ?? "";
  return words === "" ? "" : `: ${words}`;
}
