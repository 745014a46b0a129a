/**
 * A real kube-apiserver with etcd, on loopback ports and a temporary folder. It has no scheduler, no kubelet and no
 * controllers: pod-scheduler.ts, node-agent.ts and kwok-nodes.ts do the work of those that pods need.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { get } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { CoreV1Api, KubeConfig } from "@kubernetes/client-node";
import { afterFile } from "../support/after-file.ts";
import { certificate } from "../support/certificates.ts";
import { type ClusterNamespace, createNamespace, type NamespaceOptions } from "./cluster-namespace.ts";
import { freePorts } from "./free-ports.ts";
import { writeKubeconfig } from "./kubeconfig.ts";
import { controlPlane } from "./kubernetes-binaries.ts";
import { type OwnedProgram, ownedProgram } from "./owned-program.ts";

export interface KubernetesCluster {
  readonly url: string;
  /** Of the administrator. */
  readonly kubeconfigPath: string;
  readonly config: KubeConfig;
  readonly core: CoreV1Api;
  /** Creates a namespace, and in it an account that may do what the executor may. */
  namespace(options?: NamespaceOptions): Promise<ClusterNamespace>;
  stop(): Promise<void>;
}

/** A cluster of this process alone. */
export interface PrivateCluster extends KubernetesCluster {
  /** Its logs are kube-apiserver.log and etcd.log. */
  readonly folder: string;
  /** Kills the API server like the out-of-memory killer; etcd keeps running. */
  down(): Promise<void>;
  /** Starts it again on the same port, and waits until it is ready. */
  up(): Promise<void>;
}

/** USE_EXISTING_CLUSTER=true: the tests use the cluster of KUBECONFIG. It has nodes of its own. */
export const usesExistingCluster = process.env.USE_EXISTING_CLUSTER === "true";

const READY_TIMEOUT_MS = 50_000;

/** The existing cluster, or a private one. */
export async function kubernetesCluster(): Promise<KubernetesCluster> {
  return usesExistingCluster ? existingCluster() : privateCluster();
}

export async function privateCluster(): Promise<PrivateCluster> {
  const programs = await controlPlane();
  const folder = await mkdtemp(join(tmpdir(), "tw-kubernetes-"));
  const [port, etcdPort, peerPort] = (await freePorts(3)) as [number, number, number];
  const url = `https://127.0.0.1:${port}`;
  const authority = certificate("tradewind-test-ca");
  const serving = certificate("kube-apiserver", authority);
  const token = "administrator";
  const file = (name: string) => join(folder, name);
  await writeFile(file("serving.crt"), serving.cert);
  await writeFile(file("serving.key"), serving.key);
  await writeFile(file("tokens.csv"), `${token},administrator,administrator,system:masters\n`);
  const kubeconfigPath = await writeKubeconfig(file("administrator.kubeconfig"), {
    server: url,
    ca: authority.cert,
    token,
  });

  const etcdUrl = `http://127.0.0.1:${etcdPort}`;
  const etcd = await ownedProgram(
    programs.etcd,
    flags({
      "data-dir": file("etcd"),
      "unsafe-no-fsync": "true",
      "listen-client-urls": etcdUrl,
      "advertise-client-urls": etcdUrl,
      "listen-peer-urls": `http://127.0.0.1:${peerPort}`,
      "log-level": "warn",
    }),
    file("etcd.log"),
  );
  const apiserverFlags = flags({
    "etcd-servers": etcdUrl,
    "bind-address": "127.0.0.1",
    "advertise-address": "127.0.0.1",
    "secure-port": `${port}`,
    "tls-cert-file": file("serving.crt"),
    "tls-private-key-file": file("serving.key"),
    "token-auth-file": file("tokens.csv"),
    "authorization-mode": "RBAC",
    "service-account-issuer": "https://kubernetes.default.svc",
    "service-account-signing-key-file": file("serving.key"),
    "service-account-key-file": file("serving.crt"),
    "service-cluster-ip-range": "10.0.0.0/24",
    "endpoint-reconciler-type": "none",
  });
  let apiserver: OwnedProgram | undefined;
  const up = async () => {
    apiserver = await ownedProgram(programs.apiserver, apiserverFlags, file("kube-apiserver.log"));
    await untilReady(url, authority.cert, token, [etcd, apiserver]);
  };
  const down = async () => apiserver?.kill();
  let stopping: Promise<void> | undefined;
  const stop = () => {
    // The API server first: without etcd it would fill its log.
    stopping ??= down()
      .then(() => etcd.kill())
      .then(() => rm(folder, { recursive: true, force: true }));
    return stopping;
  };
  opened.push(stop);
  await up();
  const config = configOf(kubeconfigPath);
  const core = config.makeApiClient(CoreV1Api);
  return {
    url,
    kubeconfigPath,
    config,
    core,
    folder,
    namespace: (options = {}) => createNamespace(config, folder, options),
    down,
    up,
    stop,
  };
}

async function existingCluster(): Promise<KubernetesCluster> {
  const kubeconfigPath = process.env.KUBECONFIG;
  if (kubeconfigPath === undefined) throw new Error("USE_EXISTING_CLUSTER=true needs KUBECONFIG");
  const config = configOf(kubeconfigPath);
  const url = config.getCurrentCluster()?.server;
  if (url === undefined) throw new Error(`KUBECONFIG ${kubeconfigPath} has no current context`);
  const folder = await mkdtemp(join(tmpdir(), "tw-kubernetes-"));
  const core = config.makeApiClient(CoreV1Api);
  const created: string[] = [];
  const stop = async () => {
    await Promise.all(created.splice(0).map((name) => core.deleteNamespace({ name })));
    await rm(folder, { recursive: true, force: true });
  };
  opened.push(stop);
  return {
    url,
    kubeconfigPath,
    config,
    core,
    namespace: async (options = {}) => {
      const namespace = await createNamespace(config, folder, options);
      created.push(namespace.name);
      return namespace;
    },
    stop,
  };
}

function configOf(kubeconfigPath: string): KubeConfig {
  const config = new KubeConfig();
  config.loadFromFile(kubeconfigPath);
  return config;
}

function flags(settings: Readonly<Record<string, string>>): string[] {
  return Object.entries(settings).map(([name, value]) => `--${name}=${value}`);
}

async function untilReady(url: string, ca: string, token: string, programs: readonly OwnedProgram[]) {
  const deadline = performance.now() + READY_TIMEOUT_MS;
  while (!(await isReady(url, ca, token))) {
    const ended = programs.find((program) => !program.isRunning);
    if (ended !== undefined) throw new Error(`a program has ended:\n${await ended.lastLines()}`);
    if (performance.now() > deadline)
      throw new Error(`${url} is not ready:\n${await programs.at(-1)?.lastLines()}`);
    await sleep(50);
  }
}

function isReady(url: string, ca: string, token: string): Promise<boolean> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${token}` };
    get(`${url}/readyz`, { ca, headers, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    }).on("error", () => resolve(false));
  });
}

const opened: (() => Promise<void>)[] = [];

afterFile(async () => {
  await Promise.all(opened.splice(0).map((close) => close()));
});
