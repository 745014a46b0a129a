/**
 * An installation whose tasks run in pods: schedulers as processes, an API in this process, a namespace of a real cluster, and
 * a node whose "image" is the command of this checkout.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { V1Pod } from "@kubernetes/client-node";
import { type LogLine, readLines } from "../../src/log/task-log.ts";
import { createApi } from "../../src/process/api.ts";
import { openLogs } from "../../src/process/parts/log-store.ts";
import { resolveConfig } from "../../src/service/config.ts";
import { openHome } from "../../src/service/home.ts";
import { silentLogger } from "../../src/service/logger.ts";
import { adhoc } from "../../src/store/database/database.ts";
import { afterFile } from "../support/after-file.ts";
import { SchedulerRig } from "../support/scheduler-rig.ts";
import type { ClusterNamespace } from "./cluster-namespace.ts";
import type { PrivateCluster } from "./kubernetes-cluster.ts";
import { type NodeAgent, type NodeAgentOptions, nodeAgent } from "./node-agent.ts";

const CLI = fileURLToPath(new URL("../../../cli/src/main.ts", import.meta.url));
export const COMMAND = [process.execPath, "--conditions=source", CLI];

/** The key of `SchedulerRig`. */
const SECRET_KEY = Buffer.alloc(32, 7).toString("base64url");

export interface SchedulerProcess {
  readonly child: ChildProcess;
  kill(): Promise<void>;
}

export class KubernetesRig {
  readonly rig: SchedulerRig;
  readonly namespace: ClusterNamespace;
  readonly agent: NodeAgent;
  readonly #undo: (() => Promise<unknown>)[] = [];
  #url = "";
  #processes = 0;

  static async open(
    cluster: PrivateCluster,
    options: NodeAgentOptions & { readonly dags: Readonly<Record<string, string>> },
  ): Promise<KubernetesRig> {
    const [rig, namespace] = await Promise.all([SchedulerRig.open(), cluster.namespace()]);
    const agent = await nodeAgent(cluster, namespace, { entrypoint: COMMAND, ...options });
    const opened = new KubernetesRig(rig, namespace, agent);
    rigs.push(opened);
    await opened.#startApi();
    await rig.publish(options.dags);
    return opened;
  }

  private constructor(rig: SchedulerRig, namespace: ClusterNamespace, agent: NodeAgent) {
    this.rig = rig;
    this.namespace = namespace;
    this.agent = agent;
  }

  /** Resolves when it is registered. Stopped with the rig. */
  async scheduler(settings: Readonly<Record<string, string>> = {}): Promise<SchedulerProcess> {
    const podTemplate = join(this.rig.root, "pod.yaml");
    await writeFile(podTemplate, TEMPLATE);
    const before = await this.#schedulers();
    const log = process.env.TRADEWIND_TEST_LOG ? "inherit" : "ignore";
    const [program = "", ...args] = COMMAND;
    const child = spawn(program, [...args, "scheduler"], {
      stdio: ["ignore", log, log],
      env: {
        PATH: process.env.PATH,
        DATABASE_URL: this.rig.url,
        TRADEWIND_HOME: join(this.rig.root, `scheduler-${this.#processes++}`),
        TRADEWIND_LOG_STORE: this.#logStore,
        TRADEWIND_SECRET_KEY: SECRET_KEY,
        TRADEWIND_EXECUTOR: "kubernetes",
        TRADEWIND_POD_TEMPLATE: podTemplate,
        TRADEWIND_EXECUTION_URL: this.#url,
        TRADEWIND_LOG_LEVEL: "debug",
        KUBECONFIG: this.namespace.kubeconfigPath,
        ...settings,
      },
    });
    const ended = once(child, "exit");
    const kill = async () => {
      child.kill("SIGKILL");
      await ended;
    };
    this.#undo.push(kill);
    await this.rig.until(async () => (await this.#schedulers()) > before, "the start of a scheduler", 60_000);
    return { child, kill };
  }

  /** All schedulers that are not alive are declared dead now, instead of after the end of their leases. */
  async expireSchedulers(): Promise<void> {
    await this.sql("UPDATE job SET lease_until = now() - interval '1 second' WHERE kind = 'scheduler'");
  }

  sql<R>(text: string, values: readonly unknown[] = []): Promise<R[]> {
    return this.rig.db.rows<R>(adhoc(text), values);
  }

  async pods(): Promise<V1Pod[]> {
    return (await this.namespace.core.listNamespacedPod({ namespace: this.namespace.name })).items;
  }

  /** The pod of the current attempt of a task, once it exists. */
  async podOf(run: number, task: string): Promise<string> {
    let found: V1Pod | undefined;
    await this.rig.until(
      async () => {
        const attempt = (await this.rig.tasks(run))[task]?.attempt;
        found = (await this.pods()).find(({ metadata }) => metadata?.name === `tradewind-${attempt}`);
        return found !== undefined;
      },
      `the pod of ${task}`,
      60_000,
    );
    return found?.metadata?.name ?? "";
  }

  /** Waits until the user's code of a task runs. */
  async running(run: number, task: string): Promise<string> {
    const name = await this.podOf(run, task);
    await this.rig.until(
      async () => (await this.rig.tasks(run))[task]?.state === "running",
      `${task} to run`,
      60_000,
    );
    return name;
  }

  async gone(pod: string): Promise<void> {
    await this.rig.until(
      async () => !(await this.pods()).some(({ metadata }) => metadata?.name === pod),
      `the end of pod ${pod}`,
      60_000,
    );
  }

  async ended(run: number): Promise<string> {
    return await this.rig.ended(run, 120_000);
  }

  /** The lines of all logs of a task, as `level message`. */
  async log(run: number, task: string): Promise<string[]> {
    const logs = await openLogs(
      resolveConfig({ home: this.rig.root }, { TRADEWIND_LOG_STORE: this.#logStore }),
    );
    const { dag_id: dag } = (
      await this.sql<{ dag_id: string }>("SELECT dag_id FROM dag_run WHERE id = $1", [run])
    )[0]!;
    const lines: LogLine[] = [];
    const view = logs.view([`${dag}/${run}/${task}`]);
    for await (const log of view.changed({ isAll: true }))
      lines.push(...(await readLines(log, { limit: 1e9 })).lines);
    view.close();
    await logs.close();
    return lines.toSorted((a, b) => (a.t < b.t ? -1 : 1)).map(({ level, message }) => `${level} ${message}`);
  }

  /** The environment that a process was started with. */
  environmentOf(pid: number): string {
    return readFileSync(`/proc/${pid}/environ`, "utf8");
  }

  async close(): Promise<void> {
    await Promise.all(this.#undo.splice(0).map((undo) => undo()));
    await this.agent.stop();
  }

  get #logStore(): string {
    return `file:${join(this.rig.root, "logs")}`;
  }

  async #schedulers(): Promise<number> {
    const [row] = await this.sql<{ count: string }>("SELECT count(*) FROM job WHERE kind = 'scheduler'");
    return Number(row?.count);
  }

  async #startApi(): Promise<void> {
    const { db: database, root, secretBox, wakeUps } = this.rig;
    const config = resolveConfig(
      { home: join(root, "api"), port: 0 },
      { TRADEWIND_LOG_STORE: this.#logStore },
    );
    const home = await openHome(config.home);
    const logs = await openLogs(config);
    const { api, close } = await createApi({
      config,
      database,
      home,
      logger: silentLogger,
      logs,
      secretBox,
      wakeUps,
    });
    await api.start();
    this.#url = api.url;
    this.#undo.push(async () => {
      await api.stop();
      await close();
      await logs.close();
    });
  }
}

const TEMPLATE = `
apiVersion: v1
kind: Pod
metadata:
  labels: { team: data }
spec:
  containers:
    - name: task
      image: example/tasks:1
      env: [{ name: TRADEWIND_LOG_LEVEL, value: debug }]
      resources: { limits: { memory: 1Gi } }
---
apiVersion: v1
kind: Pod
metadata:
  name: large
  labels: { team: research }
spec:
  containers: [{ name: task, image: example/large:1 }]
`;

const rigs: KubernetesRig[] = [];

afterFile(async () => {
  await Promise.all(rigs.splice(0).map((rig) => rig.close()));
});
