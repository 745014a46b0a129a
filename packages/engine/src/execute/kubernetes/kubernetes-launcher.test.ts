/** The launcher with its executor, on a real database and an in-process API server; the test plays the node. */
import { randomUUID } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { V1Pod } from "@kubernetes/client-node";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { ExecutorUnderTest } from "../../../test/execute/executor-under-test.ts";
import { type Injected, KubernetesApi } from "../../../test/support/kubernetes-api.ts";
import { LogFolder } from "../../log/log-folder.ts";
import { readLaunchToken } from "../../secret/attempt-token.ts";
import { silentLogger } from "../../service/logger.ts";
import type { ExecutorConfig, ExecutorEvent } from "../contract.ts";
import { RemoteExecutor } from "../remote/remote-executor.ts";
import { KubernetesLauncher, type KubernetesLauncherOptions } from "./kubernetes-launcher.ts";

let server: KubernetesApi;
let tw: Installation;
let under: ExecutorUnderTest;
let dagRunId: number;
let executors: RemoteExecutor[];
let events: ExecutorEvent[];
let instances = 0;

beforeEach(async () => {
  server = await KubernetesApi.start();
  tw = await Installation.open();
  under = await ExecutorUnderTest.start();
  executors = [];
  events = [];
  await tw.addDag(manifestOf("sales", [{ taskId: "load" }]));
  dagRunId = await tw.addRun("sales", { runId: "manual__1" });
});

afterEach(async () => {
  await Promise.all(executors.map((executor) => executor.stop()));
  await under[Symbol.asyncDispose]();
});

const TEMPLATE = `
apiVersion: v1
kind: Pod
spec:
  containers: [{ name: task, image: "tasks:1", resources: { limits: { memory: 1Gi } } }]
`;

/** As one scheduler has it. */
async function start(options: Partial<KubernetesLauncherOptions> = {}): Promise<RemoteExecutor> {
  const podTemplate = join(under.dir, "pod.yaml");
  await writeFile(podTemplate, TEMPLATE);
  const launcher = new KubernetesLauncher({
    ...{ podTemplate, executionUrl: "http://api:8080", namespaces: [], deletePods: "always" },
    ...{ pendingMs: 600_000, createRate: 100, kubeconfig: server.kubeconfig, sweepMs: 600_000 },
    ...options,
  });
  const executor = newExecutor(launcher);
  await executor.start((event) => events.push(event));
  return executor;
}

function newExecutor(launcher: ConstructorParameters<typeof RemoteExecutor>[0]["launcher"]): RemoteExecutor {
  const { database, secretBox } = tw.options;
  const executor = new RemoteExecutor({
    ...{
      name: "kubernetes",
      type: "kubernetes",
      database,
      launcher,
      parallelism: 100,
      secretBox,
      logger: silentLogger,
    },
    logs: new LogFolder(join(under.dir, "logs")),
    onCancels: () => {},
  });
  executors.push(executor);
  return executor;
}

/** An assignment whose launch is lost, as with a scheduler that dies. */
async function submitUnlaunched(): Promise<string> {
  const executor = newExecutor({ start: async () => {}, launch: () => {}, stop: async () => {} });
  const id = await submit(executor);
  await stored(id);
  return id;
}

const stored = (id: string) =>
  vi.waitFor(async () => expect(await tw.sql("SELECT FROM assignment WHERE id = $1", [id])).toHaveLength(1));

async function submit(executor: RemoteExecutor, config?: ExecutorConfig): Promise<string> {
  const id = randomUUID();
  const mapIndex = instances++;
  await tw.addInstance(dagRunId, "load", { mapIndex, state: "queued", attempt: id });
  const assignment = under.assignment("load", { id, dagRunId, mapIndex, ...(config && { config }) });
  executor.submit([{ ...assignment, run: { ...assignment.run, dagId: "sales", runId: "manual__1" } }]);
  return id;
}

const nameOf = (id: string) => `tradewind-${id}`;
const pod = (id: string) => server.pod(nameOf(id));
const created = (id: string) => server.until(() => pod(id));
const removed = (id: string) => server.until(() => !pod(id));

/** The reported end, once there is one. */
function endOf(id: string): Promise<unknown> {
  const query = "SELECT content FROM report WHERE assignment_id = $1 AND type = 'ended'";
  return vi.waitFor(
    async () => {
      const [row] = await tw.sql<{ content: unknown }>(query, [id]);
      expect(row).toBeDefined();
      return row?.content;
    },
    { timeout: 30_000, interval: 10 },
  );
}

const logOf = async (id: string) => (await under.log(id)).map(({ level, message }) => `${level} ${message}`);

const failure = (code: string, message: string) => {
  const error = expect.objectContaining({ code, message: expect.stringContaining(message) });
  return { outcome: { kind: "failed", error, retry: true }, error };
};

function terminated(id: string, exitCode: number, reason: string, message?: string): void {
  const state = { terminated: { exitCode, reason, ...(message !== undefined && { message }) } };
  const phase = exitCode === 0 ? "Succeeded" : "Failed";
  server.setStatus(nameOf(id), { phase, containerStatuses: [containerStatus(state)] });
}

const containerStatus = (state: object) => {
  return { name: "task", image: "tasks:1", imageID: "", ready: false, restartCount: 0, state };
};

const running = (id: string) =>
  server.setStatus(nameOf(id), { phase: "Running", containerStatuses: [containerStatus({ running: {} })] });

describe("launching", () => {
  it("creates a pod that may claim its assignment, and no other", async () => {
    const id = await submit(await start(), { image: "own:2" });
    await created(id);
    const { metadata, spec } = pod(id) as V1Pod;
    expect(metadata?.namespace).toBe("jobs");
    expect(metadata?.labels).toMatchObject({
      "tradewind.dev/assignment": id,
      "tradewind.dev/dag": "sales",
      "tradewind.dev/run": "manual__1",
      "tradewind.dev/task": "load",
      "tradewind.dev/executor": "kubernetes",
    });
    const [task] = spec?.containers ?? [];
    expect(task).toMatchObject({ image: "own:2", args: ["execute", id] });
    const token = task?.env?.find(({ name }) => name === "TRADEWIND_LAUNCH_TOKEN")?.value ?? "";
    expect(readLaunchToken(tw.options.secretBox, token)).toBe(id);
  });

  it("makes one request per pod", async () => {
    const executor = await start();
    const ids = await Promise.all(Array.from({ length: 20 }, () => submit(executor)));
    for (const id of ids) await created(id);
    expect([server.count("POST"), server.count("GET"), server.count("WATCH")]).toEqual([20, 1, 1]);
  });

  it("waits for an API server that is away", async () => {
    await server.down();
    const executor = await start();
    const id = await submit(executor);
    await stored(id);
    await server.up();
    await created(id);
    expect(executor.problem()).toBeNull();
  });

  it("finds assignments without a pod, whose scheduler died before it created one", async () => {
    const id = await submitUnlaunched();
    await start({ sweepMs: 100 });
    await created(id);
  });

  it("creates no pod again for an assignment that has one", async () => {
    const first = await start();
    const id = await submit(first);
    await created(id);
    await first.stop();
    await start({ sweepMs: 50 });
    const other = await submitUnlaunched();
    // The sweep that finds this one has also read the other.
    await created(other);
    expect(server.count("POST", nameOf(id))).toBe(1);
  });

  it("adopts a pod whose scheduler died between its creation and the answer", async () => {
    const first = await start();
    server.intercept = ({ method }) => {
      if (method !== "POST") return undefined;
      void first.stop();
      return "lose";
    };
    const id = await submit(first);
    await created(id);
    await first.stop();
    server.intercept = () => undefined;
    await start({ sweepMs: 50 });
    await created(await submitUnlaunched());
    expect(server.count("POST", nameOf(id))).toBe(1);
    terminated(id, 137, "OOMKilled");
    expect(await endOf(id)).toEqual(failure("TASK_OUT_OF_MEMORY", "OOMKilled"));
  });

  it("creates no pod again that it could create only after a while, and that the watch has not shown yet", async () => {
    const executor = await start({ sweepMs: 300 });
    await server.until(() => server.watchers === 1);
    let refusals = 0;
    server.intercept = ({ method }): Injected => {
      if (method === "WATCH") return "drop";
      return method === "POST" && refusals++ === 0
        ? { status: 429, headers: { "retry-after": "2" } }
        : undefined;
    };
    server.dropWatches();
    const id = await submit(executor);
    await created(id);
    // The sweep that finds this one has also read the other.
    await created(await submitUnlaunched());
    expect(server.count("POST", nameOf(id))).toBe(2);
  });

  it("reports why pods cannot be created, e.g. a used-up quota", async () => {
    const executor = await start();
    const message = 'pods "x" is forbidden: exceeded quota: team, requested: pods=1';
    server.intercept = ({ method }): Injected =>
      method === "POST" ? { status: 403, body: { reason: "Forbidden", message } } : undefined;
    await submit(executor);
    await server.until(() => server.count("POST") === 2);
    expect(executor.problem()).toContain("exceeded quota: team");
  });
});

describe("a pod that can never be created", () => {
  it("fails the attempt with the words of the API server, in its log, too", async () => {
    const executor = await start();
    const message = "pods is forbidden: User cannot create resource";
    server.intercept = ({ method }): Injected =>
      method === "POST" ? { status: 403, body: { reason: "Forbidden", message } } : undefined;
    const id = await submit(executor);
    const text = `The Kubernetes API rejected pod ${nameOf(id)} in namespace jobs (status 403): ${message}`;
    expect(await endOf(id)).toEqual(failure("POD_REJECTED", text));
    await expect.poll(() => logOf(id)).toEqual([`error ${text}`]);
    expect(server.count("POST")).toBe(1);
  });

  it("fails the attempt for an invalid executorConfig", async () => {
    const id = await submit(await start(), { imgae: "own:2" });
    expect(await endOf(id)).toEqual(failure("POD_REJECTED", "executorConfig.imgae is unknown"));
    expect(server.count("POST")).toBe(0);
  });
});

describe("the end of a pod", () => {
  it("is not reported again when its worker has reported the end", async () => {
    const id = await submit(await start());
    await created(id);
    const own = { outcome: { kind: "success" } };
    await tw.sql("INSERT INTO report (assignment_id, type, content, at) VALUES ($1, 'ended', $2, now())", [
      id,
      JSON.stringify(own),
    ]);
    terminated(id, 0, "Completed");
    await removed(id);
    expect(await endOf(id)).toEqual(own);
    expect(await logOf(id)).toEqual([]);
  });

  it("fails the attempt when nothing was reported", async () => {
    const id = await submit(await start());
    await created(id);
    terminated(id, 0, "Completed");
    expect(await endOf(id)).toEqual(failure("POD_FAILED", 'Check that its container "task" runs'));
  });

  it("fails the attempt that ran out of memory, with the limit in its log", async () => {
    const id = await submit(await start());
    await created(id);
    running(id);
    terminated(id, 137, "OOMKilled");
    const text = 'Container "task" exceeded its memory limit of 1Gi (OOMKilled)';
    expect(await endOf(id)).toEqual(failure("TASK_OUT_OF_MEMORY", text));
    await removed(id);
    await expect.poll(() => logOf(id)).toEqual([`error ${text}`]);
  });

  it("loses the attempt of an evicted pod", async () => {
    const id = await submit(await start());
    await created(id);
    server.setStatus(nameOf(id), { phase: "Failed", reason: "Evicted", message: "low on memory" });
    expect(await endOf(id)).toEqual({ lost: "its pod ended: Evicted: low on memory" });
    await expect
      .poll(() => logOf(id))
      .toEqual(["warn Its pod ended: Evicted: low on memory. Lost; it does not count as a try."]);
  });

  it("loses the attempt of a pod that someone deletes", async () => {
    const id = await submit(await start());
    await created(id);
    running(id);
    server.remove(nameOf(id));
    expect(await endOf(id)).toEqual({ lost: "its pod was deleted" });
  });

  it("is noticed although the watch was interrupted meanwhile", async () => {
    const executor = await start();
    const [ended, deleted] = [await submit(executor), await submit(executor)];
    await created(ended);
    await created(deleted);
    // Events arrive in order: after the end of this one, the others are known.
    const marker = await submit(executor);
    await created(marker);
    terminated(marker, 1, "Error");
    await removed(marker);
    server.intercept = ({ method }) => (method === "WATCH" ? "drop" : undefined);
    server.dropWatches();
    terminated(ended, 1, "Error", "error: no token");
    server.remove(nameOf(deleted));
    server.compact();
    server.intercept = () => undefined;
    expect(await endOf(ended)).toEqual(failure("POD_FAILED", "exit code 1 (Error): error: no token"));
    expect(await endOf(deleted)).toEqual({ lost: "its pod was deleted" });
  });

  it("is reported by another scheduler when the one that created the pod is gone", async () => {
    const first = await start();
    const id = await submit(first);
    await created(id);
    await start();
    await first.stop();
    terminated(id, 137, "OOMKilled");
    expect(await endOf(id)).toEqual(failure("TASK_OUT_OF_MEMORY", "OOMKilled"));
    await removed(id);
  });

  it("is reported when all schedulers were away", async () => {
    const first = await start();
    const id = await submit(first);
    await created(id);
    await first.stop();
    terminated(id, 137, "OOMKilled");
    await start();
    expect(await endOf(id)).toEqual(failure("TASK_OUT_OF_MEMORY", "OOMKilled"));
    await removed(id);
  });

  it("costs one request to remove the pod, however many schedulers see it", async () => {
    const first = await start();
    await start();
    await start();
    const id = await submit(first);
    await created(id);
    terminated(id, 1, "Error");
    await removed(id);
    expect(server.count("DELETE")).toBe(1);
  });

  it("reports the end of a callback to its owner", async () => {
    const executor = await start();
    const callback = under.callback({ id: randomUUID(), dagRunId });
    executor.submit([callback]);
    await created(callback.id);
    terminated(callback.id, 128, "StartError", "no such file");
    expect(await endOf(callback.id)).toMatchObject({
      error: { code: "POD_FAILED", message: expect.stringContaining("StartError): no such file") },
    });
  });
});

describe("a pod that does not start", () => {
  const waiting = (id: string, reason: string, message: string) =>
    server.setStatus(nameOf(id), {
      phase: "Pending",
      containerStatuses: [containerStatus({ waiting: { reason, message } })],
    });

  it("fails the attempt at once for an invalid image name, and is deleted with every policy", async () => {
    const id = await submit(await start({ deletePods: "never" }));
    await created(id);
    waiting(id, "InvalidImageName", "couldn't parse image reference");
    expect(await endOf(id)).toEqual(failure("POD_NOT_STARTED", "InvalidImageName: couldn't parse image"));
    await removed(id);
  });

  it("fails the attempt after a few seconds without its image", async () => {
    const id = await submit(await start());
    await created(id);
    const began = performance.now();
    waiting(id, "ErrImagePull", "registry says 404");
    waiting(id, "ImagePullBackOff", "Back-off pulling image");
    expect(await endOf(id)).toEqual(failure("POD_NOT_STARTED", "ImagePullBackOff: Back-off pulling image"));
    expect(performance.now() - began).toBeGreaterThan(9_000);
  });

  it("fails the attempt when no node can take it for too long", async () => {
    const id = await submit(await start({ pendingMs: 300 }));
    await created(id);
    const condition = {
      type: "PodScheduled",
      status: "False",
      reason: "Unschedulable",
      message: "0/3 nodes",
    };
    server.setStatus(nameOf(id), { phase: "Pending", conditions: [condition] });
    expect(await endOf(id)).toEqual(
      failure("POD_NOT_STARTED", "The pod did not start within 300 ms: no node can take the pod"),
    );
    await removed(id);
  });
});

describe("deletion", () => {
  it.each([
    ["always", 0, "deleted"],
    ["always", 1, "deleted"],
    ["onSuccess", 0, "deleted"],
    ["onSuccess", 1, "kept"],
    ["never", 0, "kept"],
    ["never", 1, "kept"],
  ] as const)("%s: a pod with exit code %i is %s", async (deletePods, exitCode, expected) => {
    const id = await submit(await start({ deletePods }));
    await created(id);
    terminated(id, exitCode, "Any");
    if (expected === "deleted") await removed(id);
    else await server.until(() => pod(id)?.metadata?.labels?.["tradewind.dev/done"] === "true");
    expect(server.count("DELETE")).toBe(expected === "deleted" ? 1 : 0);
  });

  it("removes the pod of an attempt that is cancelled before it has started", async () => {
    const executor = await start();
    const id = await submit(executor);
    await created(id);
    executor.cancel(id, "cancelled");
    await removed(id);
    await expect.poll(() => events).toMatchObject([{ attempt: id, outcome: { kind: "cancelled" } }]);
  });

  it("removes a pod whose creation was under way when its attempt was cancelled", async () => {
    const executor = await start();
    let id = "";
    server.intercept = ({ method }) => {
      if (method === "POST") executor.cancel(id, "cancelled");
      return undefined;
    };
    id = await submit(executor);
    await server.until(() => server.count("DELETE", nameOf(id)) > 0);
    await removed(id);
  });

  it("removes a pod that was created just before its attempt was cancelled, and not seen yet", async () => {
    const executor = await start();
    await server.until(() => server.watchers === 1);
    server.intercept = ({ method }) => (method === "WATCH" ? "drop" : undefined);
    server.dropWatches();
    const id = await submit(executor);
    await created(id);
    executor.cancel(id, "cancelled");
    await removed(id);
  });

  it("removes pods whose assignment does not exist any more", async () => {
    const id = await submit(await start({ sweepMs: 100 }));
    await created(id);
    running(id);
    await tw.sql("DELETE FROM assignment WHERE id = $1", [id]);
    await server.until(() => pod(id)?.metadata?.deletionTimestamp);
  });

  it("leaves the pods of other installations and other users alone", async () => {
    const foreign = { "tradewind.dev/installation": "other", "tradewind.dev/executor": "kubernetes" };
    for (const [name, labels] of [
      ["foreign", foreign],
      ["unrelated", {}],
    ] as const)
      server.add({ metadata: { name, labels: { ...labels, "tradewind.dev/assignment": randomUUID() } } });
    const id = await submit(await start({ sweepMs: 50 }));
    await created(id);
    running(id);
    await tw.sql("DELETE FROM assignment WHERE id = $1", [id]);
    await server.until(() => pod(id)?.metadata?.deletionTimestamp);
    expect(["foreign", "unrelated"].map((name) => server.count("DELETE", name))).toEqual([0, 0]);
  });

  it("is repeated when it fails", async () => {
    const id = await submit(await start({ sweepMs: 100 }));
    await created(id);
    let failures = 0;
    server.intercept = ({ method }) =>
      method === "DELETE" && failures++ < 2 ? { status: 500, body: { message: "etcd" } } : undefined;
    terminated(id, 1, "Error");
    await removed(id);
    expect(failures).toBe(3);
  });
});
