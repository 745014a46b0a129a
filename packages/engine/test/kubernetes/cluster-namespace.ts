import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  ApiException,
  CoreV1Api,
  KubeConfig,
  RbacAuthorizationV1Api,
  type V1PolicyRule,
} from "@kubernetes/client-node";
import { writeKubeconfig } from "./kubeconfig.ts";

/** A namespace of a test, seen with the rights of the executor. */
export interface ClusterNamespace {
  readonly name: string;
  /** Of the executor's account; its context names the namespace. */
  readonly kubeconfigPath: string;
  readonly token: string;
  readonly config: KubeConfig;
  readonly core: CoreV1Api;
}

export interface NamespaceOptions {
  /** The first part of its name. */
  readonly name?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** The rights of the account in this namespace. */
  readonly rules?: readonly V1PolicyRule[];
}

/** The rights that the executor needs, and no others. */
export const EXECUTOR_RULES: readonly V1PolicyRule[] = [
  { apiGroups: [""], resources: ["pods"], verbs: ["create", "get", "list", "watch", "patch", "delete"] },
];

const ACCOUNT = "tradewind-executor";
const TOKEN_SECONDS = 3600;

export async function createNamespace(
  administrator: KubeConfig,
  folder: string,
  options: NamespaceOptions,
): Promise<ClusterNamespace> {
  const core = administrator.makeApiClient(CoreV1Api);
  const rbac = administrator.makeApiClient(RbacAuthorizationV1Api);
  const name = `${options.name ?? "tradewind"}-${randomBytes(4).toString("hex")}`;
  await core.createNamespace({ body: { metadata: { name, labels: { ...options.labels } } } });
  const account = (of: string) =>
    core.createNamespacedServiceAccount({ namespace: name, body: { metadata: { name: of } } });
  // Pods need it, and a cluster with controllers creates it itself.
  await account("default").catch((error: unknown) => {
    if (!(error instanceof ApiException && error.code === 409)) throw error;
  });
  await account(ACCOUNT);
  const rules = [...(options.rules ?? EXECUTOR_RULES)];
  await rbac.createNamespacedRole({ namespace: name, body: { metadata: { name: ACCOUNT }, rules } });
  await rbac.createNamespacedRoleBinding({
    namespace: name,
    body: {
      metadata: { name: ACCOUNT },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: ACCOUNT },
      subjects: [{ kind: "ServiceAccount", name: ACCOUNT, namespace: name }],
    },
  });
  const { status } = await core.createNamespacedServiceAccountToken({
    namespace: name,
    name: ACCOUNT,
    body: { spec: { audiences: [], expirationSeconds: TOKEN_SECONDS } },
  });
  const token = status?.token ?? "";
  const cluster = administrator.getCurrentCluster();
  const ca = cluster?.caData
    ? Buffer.from(cluster.caData, "base64").toString()
    : cluster?.caFile && (await readFile(cluster.caFile, "utf8"));
  const kubeconfigPath = await writeKubeconfig(join(folder, `${name}.kubeconfig`), {
    server: cluster?.server ?? "",
    ca: ca || undefined,
    token,
    namespace: name,
  });
  const config = new KubeConfig();
  config.loadFromFile(kubeconfigPath);
  return { name, kubeconfigPath, token, config, core: config.makeApiClient(CoreV1Api) };
}
