/** The pod of an assignment: a template, with the changes of its task and of the executor. */
import type { V1Container, V1EnvVar, V1Pod } from "@kubernetes/client-node";
import type { Json } from "@tradewind/sdk/manifest";
import type { LaunchedTask } from "../remote/launcher.ts";
import { annotationsOf, labelsOf, type PodOwner, podName, QUEUES } from "./pod-labels.ts";
import { MergeError, mergePod } from "./pod-merge.ts";
import { type PodTemplate, type PodTemplates, TASK_CONTAINER } from "./pod-templates.ts";

type Config = Readonly<Record<string, Json>>;

export interface PodRequest {
  readonly id: string;
  readonly queue: string;
  /** The `executorConfig` of the task. */
  readonly config: Config | null;
  readonly task: LaunchedTask;
  readonly launchToken: string;
}

export interface PodTerms {
  readonly templates: PodTemplates;
  readonly owner: PodOwner;
  /** The first one is the default; pods are created in no other. */
  readonly namespaces: readonly string[];
  /** The API as seen from pods. */
  readonly executionUrl: string;
}

export interface TaskPod {
  readonly namespace: string;
  readonly name: string;
  readonly pod: V1Pod;
}

/** The task asks for a pod that cannot be made. */
export class PodConfigError extends Error {}

const FIELDS = [
  "template",
  "image",
  "resources",
  "labels",
  "annotations",
  "serviceAccount",
  "podOverride",
] as const;

/** @throws PodConfigError if the `executorConfig` is invalid. */
export function taskPod(request: PodRequest, terms: PodTerms): TaskPod {
  const config = request.config ?? {};
  const { pod: template } = templateOf(request.queue, config, terms.templates);
  const changed = changedPod(template, config);
  const name = podName(request.id);
  const namespace = changed.metadata?.namespace ?? terms.namespaces[0] ?? "default";
  if (!terms.namespaces.includes(namespace))
    throw new PodConfigError(
      `The pod cannot be created in namespace "${namespace}", because only these are configured: ${terms.namespaces.join(", ")}. Add it to TRADEWIND_KUBERNETES_NAMESPACE.`,
    );
  const { [QUEUES]: _, ...annotations } = changed.metadata?.annotations ?? {};
  const metadata = {
    ...changed.metadata,
    name,
    namespace,
    labels: { ...changed.metadata?.labels, ...labelsOf(terms.owner, request.id, request.task) },
    annotations: { ...annotations, ...annotationsOf(request.task) },
  };
  const spec = {
    // A service called "tradewind" would set TRADEWIND_PORT.
    enableServiceLinks: false,
    // Not for user code, unless the template requests it.
    automountServiceAccountToken: false,
    ...changed.spec,
    restartPolicy: "Never",
    containers: (changed.spec?.containers ?? []).map((container) =>
      container.name === TASK_CONTAINER ? taskContainer(container, request, terms) : container,
    ),
  };
  return { namespace, name, pod: { ...changed, apiVersion: "v1", kind: "Pod", metadata, spec } };
}

function taskContainer(
  container: V1Container,
  { id, launchToken }: PodRequest,
  { executionUrl }: PodTerms,
): V1Container {
  const own: V1EnvVar[] = [
    { name: "TRADEWIND_URL", value: executionUrl },
    { name: "TRADEWIND_LAUNCH_TOKEN", value: launchToken },
  ];
  const names = new Set(own.map(({ name }) => name));
  return {
    // If it fails, its last words are the message of its status.
    terminationMessagePolicy: "FallbackToLogsOnError",
    ...container,
    args: ["execute", id],
    env: [...(container.env ?? []).filter(({ name }) => !names.has(name)), ...own],
  };
}

function templateOf(queue: string, { template: name }: Config, templates: PodTemplates): PodTemplate {
  if (name === undefined) return templates.byQueue.get(queue) ?? templates.default;
  const found = typeof name === "string" ? templates.byName.get(name) : undefined;
  if (found !== undefined) return found;
  const known = [...templates.byName.keys()].join(", ");
  throw new PodConfigError(
    `executorConfig.template names the pod template ${JSON.stringify(name)}, which does not exist. The templates of TRADEWIND_POD_TEMPLATE are: ${known}.`,
  );
}

function changedPod(template: V1Pod, config: Config): V1Pod {
  const unknown = Object.keys(config).find((name) => !(FIELDS as readonly string[]).includes(name));
  if (unknown !== undefined)
    throw new PodConfigError(
      `executorConfig.${unknown} is unknown to the Kubernetes executor. Use: ${FIELDS.join(", ")}.`,
    );
  const { podOverride = {} } = config;
  if (typeof podOverride !== "object" || podOverride === null || Array.isArray(podOverride))
    throw new PodConfigError("executorConfig.podOverride must be a pod: an object with metadata and spec.");
  try {
    return mergePod(mergePod(template, shortForms(config), "executorConfig"), podOverride, "podOverride");
  } catch (error) {
    if (error instanceof MergeError) throw new PodConfigError(`The pod cannot be made: ${error.message}`);
    throw error;
  }
}

/** The changes that most tasks need, without the path of their field. */
function shortForms({ annotations, image, labels, resources, serviceAccount }: Config): object {
  const container = {
    ...(image !== undefined && { image }),
    ...(resources !== undefined && { resources }),
  };
  return {
    metadata: { ...(labels !== undefined && { labels }), ...(annotations !== undefined && { annotations }) },
    spec: {
      ...(serviceAccount !== undefined && { serviceAccountName: serviceAccount }),
      containers: [{ name: TASK_CONTAINER, ...container }],
    },
  };
}
