/** The settings of the Kubernetes executor. */
import type { Setting } from "./config.ts";
import { duration, file, oneOf, publicUrl, Unfit, whole } from "./setting-values.ts";

export interface KubernetesConfig {
  /** The file of the pod templates. Undefined: there is no Kubernetes executor. */
  readonly podTemplate: string | undefined;
  /** The address of the API as seen from pods. */
  readonly executionUrl: string | undefined;
  /** The namespaces of pods, the default first. Empty: that of the kubeconfig, or of the scheduler's own pod. */
  readonly kubernetesNamespace: readonly string[];
  /** Which pods are deleted when they have ended. */
  readonly kubernetesDeletePods: "always" | "onSuccess" | "never";
  /** How long a pod may take until its task container runs. */
  readonly kubernetesPendingMs: number;
  /** Pods that a scheduler creates per second. */
  readonly kubernetesCreateRate: number;
}

type Settings = { readonly [Name in keyof KubernetesConfig]: Setting<KubernetesConfig[Name]> };

export const KUBERNETES_SETTINGS: Settings = {
  podTemplate: {
    flag: "--pod-template",
    variable: "TRADEWIND_POD_TEMPLATE",
    fallback: undefined,
    read: file,
  },
  executionUrl: {
    flag: "--execution-url",
    variable: "TRADEWIND_EXECUTION_URL",
    fallback: undefined,
    read: publicUrl,
  },
  kubernetesNamespace: {
    flag: "--kubernetes-namespace",
    variable: "TRADEWIND_KUBERNETES_NAMESPACE",
    fallback: "",
    read: namespaces,
  },
  kubernetesDeletePods: {
    flag: "--kubernetes-delete-pods",
    variable: "TRADEWIND_KUBERNETES_DELETE_PODS",
    fallback: "always",
    read: deletionPolicy,
  },
  kubernetesPendingMs: {
    flag: "--kubernetes-pending-timeout",
    variable: "TRADEWIND_KUBERNETES_PENDING_TIMEOUT",
    fallback: "10m",
    read: (text) => duration(text, 86_400_000),
  },
  kubernetesCreateRate: {
    flag: "--kubernetes-create-rate",
    variable: "TRADEWIND_KUBERNETES_CREATE_RATE",
    fallback: "100",
    read: (text) => whole(text, 1, 10_000),
  },
};

export function namespaces(text: string): string[] {
  const found = text.split(",").map((name) => name.trim());
  if (text.trim() === "") return [];
  const odd = found.find((name) => !/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(name));
  if (odd === undefined) return [...new Set(found)];
  throw new Unfit(
    `has ${JSON.stringify(odd)}: give names of namespaces with commas between them, the default first, such as jobs,gpu-jobs.`,
  );
}

function deletionPolicy(text: string): KubernetesConfig["kubernetesDeletePods"] {
  const policies = { always: "always", onsuccess: "onSuccess", never: "never" } as const;
  return policies[oneOf(text, ["always", "onsuccess", "never"] as const)];
}
