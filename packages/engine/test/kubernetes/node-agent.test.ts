import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { V1Container, V1PodSpec } from "@kubernetes/client-node";
import { beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { isAlive } from "../support/process-alive.ts";
import { type PrivateCluster, privateCluster, usesExistingCluster } from "./kubernetes-cluster.ts";
import { type NodeAgent, type NodeAgentOptions, nodeAgent } from "./node-agent.ts";
import { deletePod, podThat } from "./pod-wait.ts";

let cluster: PrivateCluster;

describe.skipIf(usesExistingCluster)("node agent", () => {
  beforeAll(async () => {
    cluster = await privateCluster();
  });

  it("reports a process from pending to succeeded", async () => {
    const { namespace, run } = await start();
    const pod = await run("ok", { args: ["console.log(process.env.POD, process.env.GREETING)"] });
    const { status, spec } = await podThat(namespace, "ok", ({ status }) => status?.phase === "Succeeded");
    expect(pod.status?.phase).toBe("Pending");
    expect(spec?.nodeName).toMatch(/^node-/);
    expect(status).toMatchObject({ hostIP: "127.0.0.1", podIP: "127.0.0.1", startTime: expect.anything() });
    expect(status?.containerStatuses?.[0]?.state?.terminated).toMatchObject({
      exitCode: 0,
      reason: "Completed",
      startedAt: expect.anything(),
      finishedAt: expect.anything(),
    });
  });

  it("expands the environment of a container from fields, secrets and variables", async () => {
    const { namespace, run, agent } = await start();
    await cluster.core.createNamespacedSecret({
      namespace: namespace.name,
      body: { metadata: { name: "token" }, stringData: { value: "s3cret" } },
    });
    const fields = ["metadata.name", "metadata.namespace", "metadata.labels['app']", "spec.nodeName"];
    await run("env", {
      args: ["console.log(...process.argv.slice(1), process.env.SECRET)", "$(F0)", "$(F1)", "$(F2)", "$(F3)"],
      env: [
        ...fields.map((fieldPath, at) => ({ name: `F${at}`, valueFrom: { fieldRef: { fieldPath } } })),
        { name: "SECRET", valueFrom: { secretKeyRef: { name: "token", key: "value" } } },
      ],
    });
    await podThat(namespace, "env", ({ status }) => status?.phase === "Succeeded");
    const output = await agent.pod("env").output();
    expect(output.trim()).toBe(`env ${namespace.name} tests ${agent.nodeName} s3cret`);
  });

  it("reports the exit code of a failed process, and the end of its output", async () => {
    const { namespace, run } = await start();
    await run("bad", {
      args: ["console.log('no such table'); process.exitCode = 3"],
      terminationMessagePolicy: "FallbackToLogsOnError",
    });
    const { status } = await podThat(namespace, "bad", ({ status }) => status?.phase === "Failed");
    expect(status?.containerStatuses?.[0]?.state?.terminated).toMatchObject({
      exitCode: 3,
      reason: "Error",
      message: "no such table\n",
    });
  });

  it("runs init containers in order, and none after one that fails", async () => {
    const { namespace, run } = await start();
    const folder = await mkdtemp(join(tmpdir(), "tw-init-"));
    const append = (text: string, exitCode: number) => ({
      ...CONTAINER,
      workingDir: folder,
      args: [`require("fs").appendFileSync("order", "${text}"); process.exitCode = ${exitCode}`],
    });
    const init = [append("1", 0), append("2", 0)].map((each, at) => ({ ...each, name: `init-${at}` }));
    await run("inits", append("3", 0), { initContainers: init });
    await podThat(namespace, "inits", ({ status }) => status?.phase === "Succeeded");
    expect(await readFile(join(folder, "order"), "utf8")).toBe("123");
    const failing = [append("4", 1), append("5", 0)].map((each, at) => ({ ...each, name: `init-${at}` }));
    await run("fails", append("6", 0), { initContainers: failing });
    const failed = await podThat(namespace, "fails", ({ status }) => status?.phase === "Failed");
    expect(await readFile(join(folder, "order"), "utf8")).toBe("1234");
    expect(failed.status?.initContainerStatuses?.[0]?.state?.terminated?.exitCode).toBe(1);
    await rm(folder, { recursive: true });
  });

  it("reports a command that does not exist as a start error", async () => {
    const { namespace, run } = await start();
    await run("missing", { command: ["/no/such/program"] });
    const { status } = await podThat(namespace, "missing", ({ status }) => status?.phase === "Failed");
    expect(status?.containerStatuses?.[0]?.state?.terminated).toMatchObject({
      exitCode: 128,
      reason: "StartError",
    });
  });

  it("ends a deleted pod with SIGTERM, and deletes it when its process has ended", async () => {
    const { namespace, run, agent } = await start();
    await run("polite", { args: [`process.on("SIGTERM", () => process.exit(7)); ${WAIT}`] });
    await started(agent, "polite");
    const last = await deletePod(namespace, "polite");
    expect(last?.status?.containerStatuses?.[0]?.state?.terminated?.exitCode).toBe(7);
  });

  it("kills a deleted pod after the grace period of the deletion", async () => {
    const { namespace, run, agent } = await start();
    await run("stubborn", { args: [`process.on("SIGTERM", () => {}); ${WAIT}`] });
    const pid = await started(agent, "stubborn");
    const last = await deletePod(namespace, "stubborn", 1);
    expect(last?.status?.containerStatuses?.[0]?.state?.terminated?.exitCode).toBe(137);
    expect(isAlive(pid)).toBe(false);
  });

  it("ends a pod that runs longer than its active deadline", async () => {
    const { namespace, run } = await start();
    await run("late", { args: [WAIT] }, { activeDeadlineSeconds: 1 });
    const { status } = await podThat(namespace, "late", ({ status }) => status?.phase === "Failed");
    expect(status?.reason).toBe("DeadlineExceeded");
  });

  it("reports an unschedulable pod until its trouble ends", async () => {
    const message = "0/1 nodes are available: 1 Insufficient memory.";
    const { namespace, run, agent } = await start({ trouble: () => ({ unschedulable: message }) });
    await run("large", { args: [""] });
    const { status } = await podThat(namespace, "large", ({ status }) => status?.conditions !== undefined);
    expect(status?.phase).toBe("Pending");
    expect(status?.conditions).toMatchObject([
      { type: "PodScheduled", status: "False", reason: "Unschedulable", message },
    ]);
    agent.endTrouble("large");
    await podThat(namespace, "large", ({ status }) => status?.phase === "Succeeded");
  });

  it.each(["ImagePullBackOff", "ErrImagePull", "InvalidImageName", "ContainerCreating"])(
    "reports a container that waits with reason %s, and starts it when its trouble ends",
    async (reason) => {
      const waiting = { reason, message: `no image: ${reason}` };
      const { namespace, run, agent } = await start({ trouble: () => ({ waiting }) });
      await run("waits", { args: [""] });
      const { status } = await podThat(namespace, "waits", ({ status }) => !!status?.containerStatuses);
      expect(status?.phase).toBe("Pending");
      expect(status?.containerStatuses?.[0]?.state).toEqual({ waiting });
      agent.endTrouble("waits");
      await podThat(namespace, "waits", ({ status }) => status?.phase === "Succeeded");
    },
  );

  it("deletes a pod whose container has never started", async () => {
    const waiting = { reason: "ImagePullBackOff" };
    const { namespace, run } = await start({ trouble: () => ({ waiting }) });
    await run("never", { args: [""] });
    await podThat(namespace, "never", ({ status }) => !!status?.containerStatuses);
    const last = await deletePod(namespace, "never");
    expect(last?.status?.containerStatuses?.[0]?.state?.terminated).toMatchObject({
      exitCode: 137,
      reason: "ContainerStatusUnknown",
    });
  });

  it("reports a process that ran out of memory", async () => {
    const { namespace, run, agent } = await start();
    await run("hungry", { args: [WAIT] });
    await started(agent, "hungry");
    agent.pod("hungry").outOfMemory();
    const { status } = await podThat(namespace, "hungry", ({ status }) => status?.phase === "Failed");
    expect(status?.containerStatuses?.[0]?.state?.terminated).toMatchObject({
      exitCode: 137,
      reason: "OOMKilled",
    });
    expect(status?.reason).toBeUndefined();
  });

  it("reports an evicted pod", async () => {
    const { namespace, run, agent } = await start();
    await run("evicted", { args: [WAIT] });
    await started(agent, "evicted");
    agent.pod("evicted").evict();
    const { status } = await podThat(namespace, "evicted", ({ status }) => status?.phase === "Failed");
    expect(status).toMatchObject({ reason: "Evicted", message: expect.stringContaining("memory") });
    expect(status?.conditions).toContainEqual(
      expect.objectContaining({ type: "DisruptionTarget", reason: "TerminationByKubelet" }),
    );
  });

  it("leaves the status of a lost node as it was, and deleted pods stay until they are deleted by force", async () => {
    const { namespace, run, agent } = await start();
    await run("lost", { args: [WAIT] });
    const pid = await started(agent, "lost");
    await podThat(namespace, "lost", ({ status }) => status?.phase === "Running");
    agent.lose();
    await namespace.core.deleteNamespacedPod({
      namespace: namespace.name,
      name: "lost",
      gracePeriodSeconds: 1,
    });
    await processEnd(pid);
    const last = await deletePod(namespace, "lost", 0);
    expect(last?.status?.phase).toBe("Running");
  });

  it("lets processes of a disconnected node continue, and ends those of deleted pods when it reconnects", async () => {
    const { namespace, run, agent } = await start();
    await run("apart", { args: [WAIT] });
    await run("ends", { args: [`process.on("SIGUSR2", () => process.exit(0)); ${WAIT}`] });
    const [apart, ends] = [await started(agent, "apart"), await started(agent, "ends")];
    await podThat(namespace, "ends", ({ status }) => status?.phase === "Running");
    agent.disconnect();
    process.kill(ends, "SIGUSR2");
    await processEnd(ends);
    await namespace.core.deleteNamespacedPod({
      namespace: namespace.name,
      name: "apart",
      gracePeriodSeconds: 0,
    });
    expect(isAlive(apart)).toBe(true);
    agent.reconnect();
    await podThat(namespace, "ends", ({ status }) => status?.phase === "Succeeded");
    await processEnd(apart);
  });

  it("reports the end of a process that ended while the API server was down", async () => {
    const { namespace, run, agent } = await start();
    await run("during", { args: [`process.on("SIGUSR2", () => process.exit(0)); ${WAIT}`] });
    const pid = await started(agent, "during");
    await cluster.down();
    process.kill(pid, "SIGUSR2");
    await processEnd(pid);
    await cluster.up();
    await podThat(namespace, "during", ({ status }) => status?.phase === "Succeeded");
  });
});

const CONTAINER: V1Container = { name: "task", image: "example/task:1", command: [process.execPath, "-e"] };
const WAIT = "console.log(process.pid); setInterval(() => {}, 1000)";

/** A namespace, and a node of this test alone. */
async function start(options?: NodeAgentOptions) {
  const namespace = await cluster.namespace();
  const agent = await nodeAgent(cluster, namespace, options);
  onTestFinished(() => agent.stop());
  const run = (name: string, container: Partial<V1Container>, spec: Partial<V1PodSpec> = {}) =>
    namespace.core.createNamespacedPod({
      namespace: namespace.name,
      body: {
        metadata: { name, labels: { app: "tests" } },
        spec: { restartPolicy: "Never", ...spec, containers: [{ ...CONTAINER, ...container }] },
      },
    });
  return { namespace, agent, run };
}

/** The id of its process, once the process has printed it. */
async function started(agent: NodeAgent, name: string): Promise<number> {
  return vi.waitFor(
    async () => {
      const output = await agent.pod(name).output();
      expect(output).toMatch(/^\d+\n/);
      return Number.parseInt(output, 10);
    },
    { timeout: 30_000, interval: 20 },
  );
}

function processEnd(pid: number): Promise<void> {
  return vi.waitFor(() => expect(isAlive(pid)).toBe(false), { timeout: 30_000, interval: 20 });
}
