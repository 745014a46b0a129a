/** Runs of DAGs whose tasks run in pods of a real cluster: real scheduler processes, API and PostgreSQL. */
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type PrivateCluster, privateCluster, usesExistingCluster } from "./kubernetes-cluster.ts";
import { KubernetesRig } from "./kubernetes-rig.ts";
import type { NodeAgentOptions } from "./node-agent.ts";

const WAIT = `async (_, ctx) => {
  ctx.log.info("waiting");
  await new Promise((resolve) => ctx.abort.addEventListener("abort", resolve, { once: true }));
  ctx.log.info("aborted");
  return "stopped";
}`;

const DAGS = {
  "pods.ts": `
    import { readFileSync } from "node:fs";
    import { dag, TimeDeltaTrigger } from "tradewind";
    const defaults = { retries: 0 };

    export const etl = dag("etl", { defaults }, (d) => {
      const rows = d.task("extract", (_, ctx) => {
        ctx.log.info("extracting");
        return [1, 2, 3];
      });
      const doubled = d.map("double", { over: rows }, (row) => row * 2);
      d.task("sum", { inputs: { doubled } }, ({ doubled }) => doubled.reduce((a, b) => a + b, 0));
    });
    export const fails = dag("fails", { defaults }, (d) => {
      d.task("work", { onFailure: () => console.log("called back") }, () => {
        throw new Error("no such table");
      });
    });
    export const slow = dag("slow", { defaults }, (d) => {
      d.task("work", { timeout: "1s" }, ${WAIT});
    });
    export const waits = dag("waits", { defaults }, (d) => {
      d.task("work", ${WAIT});
    });
    export const defers = dag("defers", { defaults }, (d) => {
      d.task("work", async (_, ctx) => {
        const pod = await ctx.step("pod", () => process.env.HOSTNAME ?? "none");
        await ctx.until("pause", new TimeDeltaTrigger({ delta: "1s" }));
        return pod;
      });
    });
    export const large = dag("large", { defaults }, (d) => {
      const text = d.task("make", () => "x".repeat(3_000_000));
      d.task("measure", { inputs: { text } }, ({ text }) => text.length);
    });
    export const secrets = dag("secrets", { defaults }, (d) => {
      const env = [{ name: "TRADEWIND_TASK_USER", value: "root" }];
      const podOverride = { spec: { containers: [{ name: "task", env }] } };
      d.task("look", { executorConfig: { podOverride } }, () => {
        const seen = [JSON.stringify(process.env)];
        for (let pid = process.pid; pid > 1 && seen.length < 4; ) {
          seen.push(readFileSync("/proc/" + pid + "/environ", "utf8").replaceAll("\\0", "\\n"));
          pid = Number(readFileSync("/proc/" + pid + "/stat", "utf8").split(" ")[3]);
        }
        return seen;
      });
    });
    export const configured = dag("configured", { defaults }, (d) => {
      const executorConfig = {
        template: "large",
        image: "example/gpu:7",
        resources: { requests: { memory: "2Gi" } },
        labels: { cost: "research" },
        podOverride: {
          spec: {
            nodeSelector: { gpu: "a100" },
            containers: [{ name: "task", env: [{ name: "TRADEWIND_TASK_GREETING", value: "hello" }] }],
          },
        },
      };
      d.task("work", { executorConfig }, async (_, ctx) => {
        await new Promise((resolve) => ctx.abort.addEventListener("abort", resolve, { once: true }));
      });
      d.task("greet", { executorConfig }, () => process.env.TRADEWIND_TASK_GREETING ?? "nothing");
    });
    export const typo = dag("typo", { defaults }, (d) => {
      const spec = { containers: [{ name: "task", resorces: {} }] };
      d.task("work", { executorConfig: { podOverride: { spec } } }, () => 1);
    });
    export const retried = dag("retried", (d) => {
      d.task("work", { retries: 1, retryDelay: "10ms" }, ${WAIT});
    });
  `,
};

let cluster: PrivateCluster;

describe.skipIf(usesExistingCluster)("Kubernetes executor", () => {
  beforeAll(async () => {
    cluster = await privateCluster();
  });

  async function start(options: NodeAgentOptions & { readonly settings?: Record<string, string> } = {}) {
    const { settings = {}, ...rest } = options;
    const kube = await KubernetesRig.open(cluster, { dags: DAGS, ...rest });
    onTestFinished(() => kube.close());
    const scheduler = await kube.scheduler(settings);
    return { kube, rig: kube.rig, scheduler };
  }

  describe("a run", () => {
    it("has one pod per task, and leaves none behind", async () => {
      const { kube, rig } = await start();
      const run = await rig.trigger("etl");
      const pod = await kube.podOf(run, "extract");
      expect((await kube.pods())[0]?.metadata?.labels).toMatchObject({
        team: "data",
        "tradewind.dev/dag": "etl",
        "tradewind.dev/task": "extract",
      });
      expect(await kube.ended(run)).toBe("success");
      expect(await rig.output(run, "sum")).toBe(12);
      expect(await kube.log(run, "extract")).toContain("info extracting");
      await kube.gone(pod);
      await rig.until(async () => (await kube.pods()).length === 0, "the end of all pods");
      expect(kube.agent.pods()).toHaveLength(5);
      expect(await kube.sql("SELECT FROM assignment")).toEqual([]);
    });

    it("fails with the task's own error, and calls back in a pod", async () => {
      const { kube, rig } = await start();
      const run = await rig.trigger("fails");
      expect(await kube.ended(run)).toBe("failed");
      expect((await rig.tasks(run))["work"]?.reason).toContain("no such table");
      await rig.until(
        async () => (await kube.sql("SELECT FROM callback")).length === 0 && kube.agent.pods().length === 2,
        "the end of the callback",
        60_000,
      );
    });

    it("stops a task at its timeout", async () => {
      const { kube, rig } = await start();
      const run = await rig.trigger("slow");
      expect(await kube.ended(run)).toBe("failed");
      expect((await rig.tasks(run))["work"]?.reason).toContain("exceeded its timeout of 1 s");
    });

    it("stops a cancelled task gracefully, and removes its pod", async () => {
      const { kube, rig } = await start();
      const run = await rig.trigger("waits");
      const pod = await kube.running(run, "work");
      await rig.cancel(run);
      await kube.gone(pod);
      expect(await kube.ended(run)).toBe("failed");
      expect(await kube.log(run, "work")).toEqual(
        expect.arrayContaining(["info aborted", "info Cancelled."]),
      );
    });

    it("defers without a pod, and resumes in another one", async () => {
      const { kube, rig } = await start();
      await rig.triggerer({ shared: false });
      const run = await rig.trigger("defers");
      const pod = await kube.podOf(run, "work");
      await kube.gone(pod);
      expect(await kube.ended(run)).toBe("success");
      expect(kube.agent.pods()).toHaveLength(2);
    });

    it("passes large outputs from pod to pod", async () => {
      const { kube, rig } = await start();
      const run = await rig.trigger("large");
      expect(await kube.ended(run)).toBe("success");
      expect(await rig.output(run, "measure")).toBe(3_000_000);
    });

    it("shows tasks of the same account no token and no setting of the engine", async () => {
      const { kube, rig } = await start();
      const run = await rig.trigger("secrets");
      await kube.ended(run);
      expect((await rig.tasks(run))["look"]).toMatchObject({ state: "success", reason: null });
      const seen = (await rig.output(run, "look")) as string[];
      // Its own, and those of its process, its supervisor and the node.
      expect(seen).toHaveLength(4);
      for (const each of seen.slice(0, 3)) expect(each).toContain("PATH");
      expect(seen.slice(0, 3).join()).not.toMatch(/twl_|TRADEWIND_LAUNCH_TOKEN|TRADEWIND_URL/);
    });
  });

  describe("executorConfig", () => {
    it("chooses the template, image and resources of one task, and podOverride changes the rest of its pod", async () => {
      const { kube, rig } = await start();
      const run = await rig.trigger("configured");
      const name = await kube.running(run, "work");
      const pod = (await kube.pods()).find(({ metadata }) => metadata?.name === name);
      const [container] = pod?.spec?.containers ?? [];
      expect([container?.image, container?.resources?.requests]).toEqual([
        "example/gpu:7",
        { memory: "2Gi" },
      ]);
      expect(pod?.spec?.nodeSelector).toEqual({ gpu: "a100" });
      expect(pod?.metadata?.labels).toMatchObject({ cost: "research", team: "research" });
      await rig.until(async () => (await rig.states(run))["greet"] === "success", "the end of greet", 60_000);
      expect(await rig.output(run, "greet")).toBe("hello");
    });

    it("fails the task with the words of the API server if the pod is invalid", async () => {
      const { kube, rig } = await start();
      const run = await rig.trigger("typo");
      expect(await kube.ended(run)).toBe("failed");
      const words = 'strict decoding error: unknown field "spec.containers[0].resorces"';
      expect((await rig.tasks(run))["work"]?.reason).toContain(words);
      expect((await kube.log(run, "work")).join()).toContain(words);
    });
  });

  describe("a pod in trouble", () => {
    it("fails its task when its image cannot be pulled", async () => {
      const waiting = { reason: "ImagePullBackOff", message: 'Back-off pulling image "example/tasks:1"' };
      const { kube, rig } = await start({ trouble: () => ({ waiting }) });
      const run = await rig.trigger("waits");
      const pod = await kube.podOf(run, "work");
      expect(await kube.ended(run)).toBe("failed");
      expect((await rig.tasks(run))["work"]?.reason).toContain("ImagePullBackOff: Back-off pulling image");
      expect((await kube.log(run, "work")).join()).toContain("ImagePullBackOff: Back-off pulling image");
      await kube.gone(pod);
    });

    it("fails its task when no node takes it for too long", async () => {
      const { kube, rig } = await start({
        trouble: () => ({ unschedulable: "0/1 nodes are available: 1 Insufficient memory." }),
        settings: { TRADEWIND_KUBERNETES_PENDING_TIMEOUT: "2s" },
      });
      const run = await rig.trigger("waits");
      const pod = await kube.podOf(run, "work");
      expect(await kube.ended(run)).toBe("failed");
      expect((await rig.tasks(run))["work"]?.reason).toContain("Insufficient memory");
      await kube.gone(pod);
    });

    it("fails its try when it runs out of memory", async () => {
      const { kube, rig } = await start();
      const run = await rig.trigger("retried");
      const first = await kube.running(run, "work");
      kube.agent.pod(first).outOfMemory();
      await rig.until(async () => (await rig.tasks(run))["work"]?.try_number === 2, "the second try", 60_000);
      const second = await kube.running(run, "work");
      kube.agent.pod(second).outOfMemory();
      expect(await kube.ended(run)).toBe("failed");
      const task = (await rig.tasks(run))["work"];
      expect(task?.reason).toContain("exceeded its memory limit of 1Gi (OOMKilled)");
    });

    it.each([
      ["evicted", "its pod ended: Evicted"],
      ["deleted by force", "its pod was deleted"],
      ["deleted", "the executor is stopping"],
      ["killed", "exit code 137"],
    ])("starts its task again in the same try when it is %s", async (how, reason) => {
      const { kube, rig } = await start();
      const run = await rig.trigger("waits");
      const first = await kube.running(run, "work");
      const { core, name: namespace } = kube.namespace;
      if (how === "evicted") kube.agent.pod(first).evict();
      else if (how === "killed") kube.agent.pod(first).kill();
      else {
        const isForced = how === "deleted by force";
        await core.deleteNamespacedPod({
          namespace,
          name: first,
          ...(isForced && { gracePeriodSeconds: 0 }),
        });
      }
      await kube.gone(first);
      const second = await kube.running(run, "work");
      expect(second).not.toBe(first);
      expect((await rig.tasks(run))["work"]?.try_number).toBe(1);
      const lost = await kube.sql<{ reason: string }>(
        "SELECT reason FROM task_attempt WHERE dag_run_id = $1",
        [run],
      );
      expect(lost.map((each) => each.reason).join()).toContain(reason);
    });
  });

  describe("schedulers", () => {
    it("leave pods alone when they die, and the next one receives their results", async () => {
      const { kube, rig, scheduler } = await start();
      const run = await rig.trigger("waits");
      const pod = await kube.running(run, "work");
      const pid = kube.agent.pod(pod).pid;
      await scheduler.kill();
      await kube.expireSchedulers();
      await kube.scheduler();
      await rig.until(
        async () =>
          (
            await kube.sql(
              "SELECT FROM dag_run r JOIN job j ON j.id = r.owner_job AND j.state = 'running' WHERE r.id = $1",
              [run],
            )
          ).length === 1,
        "a new owner of the run",
        60_000,
      );
      expect(kube.agent.pod(pod).pid).toBe(pid);
      await rig.cancel(run);
      await kube.gone(pod);
      expect(await kube.ended(run)).toBe("failed");
      expect(kube.agent.pods()).toHaveLength(1);
    });

    it("clean up after pods that ended while there was none", async () => {
      const { kube, rig, scheduler } = await start();
      const run = await rig.trigger("etl");
      const pod = await kube.podOf(run, "extract");
      await scheduler.kill();
      await rig.until(
        async () => kube.agent.pod(pod).containers[0]?.exitCode === 0,
        "the end of the pod",
        60_000,
      );
      await kube.expireSchedulers();
      await kube.scheduler();
      expect(await kube.ended(run)).toBe("success");
      await rig.until(async () => (await kube.pods()).length === 0, "the end of all pods", 60_000);
      expect(kube.agent.pods()).toHaveLength(5);
    });

    it("report what happened to pods while the API server was down", async () => {
      const { kube, rig } = await start();
      const run = await rig.trigger("retried");
      const pod = await kube.running(run, "work");
      await cluster.down();
      kube.agent.pod(pod).outOfMemory();
      await cluster.up();
      await rig.until(async () => (await rig.tasks(run))["work"]?.try_number === 2, "the second try", 60_000);
      expect((await kube.log(run, "work")).join()).toContain("OOMKilled");
    });
  });
});
