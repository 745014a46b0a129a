import type { CoreV1Api, V1Container, V1EnvVar, V1ObjectMeta, V1Pod } from "@kubernetes/client-node";

export type Env = Record<string, string>;

/** The environment of a container, and its command. Rejects if it refers to a Secret or ConfigMap that does not exist. */
export async function containerProgram(
  core: CoreV1Api,
  pod: V1Pod,
  container: V1Container,
  entrypoint: readonly string[],
): Promise<{ readonly command: readonly string[]; readonly env: Env }> {
  const env: Env = {};
  const namespace = pod.metadata?.namespace ?? "";
  for (const { prefix = "", secretRef, configMapRef } of container.envFrom ?? []) {
    const all = secretRef
      ? await secret(core, namespace, secretRef.name ?? "")
      : await configMap(core, namespace, configMapRef?.name ?? "");
    for (const [name, value] of Object.entries(all)) env[prefix + name] = value;
  }
  for (const variable of container.env ?? []) {
    const value = await variableValue(core, pod, variable);
    if (value !== undefined) env[variable.name] = expand(value, env);
  }
  const program = container.command ?? entrypoint;
  const command = [...program, ...(container.args ?? [])].map((part) => expand(part, env));
  return { command, env };
}

/** `$(NAME)` refers to a variable, `$$` is a dollar sign. */
function expand(text: string, env: Env): string {
  return text.replaceAll(/\$\$|\$\(([^)]+)\)/g, (whole, name?: string) =>
    name === undefined ? "$" : (env[name] ?? whole),
  );
}

async function variableValue(core: CoreV1Api, pod: V1Pod, variable: V1EnvVar): Promise<string | undefined> {
  const { fieldRef, secretKeyRef, configMapKeyRef } = variable.valueFrom ?? {};
  const namespace = pod.metadata?.namespace ?? "";
  if (fieldRef) return field(pod, fieldRef.fieldPath);
  const ref = secretKeyRef ?? configMapKeyRef;
  if (ref === undefined) return variable.value ?? "";
  const read = secretKeyRef ? secret : configMap;
  const { [ref.key]: value } = await read(core, namespace, ref.name ?? "").catch((error: unknown) => {
    if (ref.optional) return {} as Env;
    throw error;
  });
  if (value === undefined && !ref.optional) throw new Error(`couldn't find key ${ref.key} in ${ref.name}`);
  return value;
}

async function secret(core: CoreV1Api, namespace: string, name: string): Promise<Env> {
  const { data } = await core.readNamespacedSecret({ namespace, name });
  return Object.fromEntries(
    Object.entries(data ?? {}).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]),
  );
}

async function configMap(core: CoreV1Api, namespace: string, name: string): Promise<Env> {
  return (await core.readNamespacedConfigMap({ namespace, name })).data ?? {};
}

/** A field of the pod, such as metadata.name or metadata.labels['app']. */
function field(pod: V1Pod, path: string): string {
  const [, map, key] = /^metadata\.(labels|annotations)\['(.+)'\]$/.exec(path) ?? [];
  if (map !== undefined) return pod.metadata?.[map as "labels" | "annotations"]?.[key as string] ?? "";
  const [part, name] = path.split(".") as [string, string];
  if (part === "status") return name === "podIP" || name === "hostIP" ? NODE_IP : "";
  const from = part === "metadata" ? pod.metadata : pod.spec;
  return String((from as V1ObjectMeta & Record<string, unknown>)?.[name] ?? "");
}

/** Of all nodes and pods. */
export const NODE_IP = "127.0.0.1";
