import { writeFile } from "node:fs/promises";

export interface Access {
  readonly server: string;
  /** PEM; left out: the system's authorities. */
  readonly ca?: string;
  readonly token: string;
  readonly namespace?: string;
}

/** @returns The path. */
export async function writeKubeconfig(path: string, access: Access): Promise<string> {
  const name = "test";
  const ca = access.ca === undefined ? undefined : Buffer.from(access.ca).toString("base64");
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name, cluster: { server: access.server, "certificate-authority-data": ca } }],
    users: [{ name, user: { token: access.token } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: access.namespace } }],
    "current-context": name,
  };
  // JSON is YAML.
  await writeFile(path, JSON.stringify(config), { mode: 0o600 });
  return path;
}
