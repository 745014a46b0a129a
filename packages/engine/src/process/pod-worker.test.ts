/** `tradewind execute` in this process: a real scheduler, API and database; the test plays the node of the pods. */
import { existsSync } from "node:fs";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { KubernetesApi } from "../../test/support/kubernetes-api.ts";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { LogFolder } from "../log/log-folder.ts";
import { resolveConfig } from "../service/config.ts";
import { openHome } from "../service/home.ts";
import { silentLogger } from "../service/logger.ts";
import { adhoc } from "../store/database/database.ts";
import { createApi } from "./api.ts";
import { type PodWorkerEnd, PodWorkerError, type PodWorkerStart, runPodWorker } from "./pod-worker.ts";

const TEMPLATE = `
apiVersion: v1
kind: Pod
spec: { containers: [{ name: task, image: "tasks:1" }] }
`;

const DAGS = {
  "pods.ts": `
    import { setTimeout as sleep } from "node:timers/promises";
    import { existsSync, writeFileSync } from "node:fs";
    import { dag } from "tradewind";
    const ledger = FOLDER;
    export const quick = dag("quick", (d) => { d.task("work", () => 42); });
    export const slow = dag("slow", (d) => {
      d.task("work", async (_, ctx) => {
        writeFileSync(ledger + "/started-" + ctx.run.id, "");
        while (!existsSync(ledger + "/go-" + ctx.run.id)) await sleep(5, undefined, { signal: ctx.abort });
        return 42;
      });
    });
  `,
};

let rig: SchedulerRig;
let kubernetes: KubernetesApi;
let url: string;
let closeApi: () => Promise<void>;
let runs = 0;

beforeAll(async () => {
  [rig, kubernetes] = await Promise.all([SchedulerRig.open(), KubernetesApi.start()]);
  const { db: database, root, secretBox, wakeUps } = rig;
  const config = resolveConfig({ home: join(root, "api"), port: 0 }, {});
  const home = await openHome(config.home);
  const parts = { config, database, home, logger: silentLogger, logs: new LogFolder(home.logs) };
  const { api, close } = await createApi({ ...parts, secretBox, wakeUps });
  await api.start();
  url = api.url;
  closeApi = async () => {
    await api.stop();
    await close();
  };
  // Tasks run as another account.
  await chmod(root, 0o777);
  const podTemplate = join(root, "pod.yaml");
  await writeFile(podTemplate, TEMPLATE);
  const { kubeconfig } = kubernetes;
  await rig.publish({ "pods.ts": DAGS["pods.ts"].replace("FOLDER", JSON.stringify(root)) });
  await rig.scheduler({
    settings: {
      TRADEWIND_EXECUTOR: "kubernetes",
      TRADEWIND_POD_TEMPLATE: podTemplate,
      TRADEWIND_EXECUTION_URL: url,
      TRADEWIND_EXECUTORS: JSON.stringify({ kubernetes: { type: "kubernetes", kubeconfig } }),
    },
  });
});

const stops = new Set<AbortController>();

afterEach(() => {
  for (const stop of stops) stop.abort();
  stops.clear();
});

afterAll(() => closeApi());

interface Pod {
  readonly name: string;
  readonly assignment: string;
  readonly token: string;
}

/** The pod of a task that is not among these. */
async function podOf(runId: string, ...known: readonly Pod[]): Promise<Pod> {
  const find = () =>
    kubernetes.pods.find(
      ({ metadata }) =>
        metadata?.annotations?.["tradewind.dev/run"] === runId &&
        !known.some(({ name }) => name === metadata.name),
    );
  await kubernetes.until(find);
  const pod = find();
  const [task] = pod?.spec?.containers ?? [];
  const env = Object.fromEntries(task?.env?.map(({ name, value }) => [name, value ?? ""]) ?? []);
  expect(env["TRADEWIND_URL"]).toBe(url);
  const [, assignment = ""] = task?.args ?? [];
  return { name: pod?.metadata?.name ?? "", assignment, token: env["TRADEWIND_LAUNCH_TOKEN"] ?? "" };
}

async function trigger(dagId: string): Promise<{ readonly id: number; readonly runId: string }> {
  const runId = `manual__${runs++}`;
  return { id: await rig.trigger(dagId, { runId }), runId };
}

/** Starts the worker of a pod. */
function start(pod: Pod, options: Partial<PodWorkerStart> = {}) {
  const stop = new AbortController();
  stops.add(stop);
  const { assignment, token } = pod;
  const env = { TRADEWIND_LOG_LEVEL: "error", TRADEWIND_STOP_GRACE_MS: "1000", TRADEWIND_DRAIN: "500ms" };
  const end: Promise<PodWorkerEnd> = runPodWorker({
    ...{ assignment, token, url, env, signal: stop.signal },
    ...options,
  });
  return { end, stop: () => stop.abort() };
}

const note = (name: string) => rig.until(async () => existsSync(join(rig.root, name)), name);

it("runs its assignment, reports it, and signs off", async () => {
  const { id, runId } = await trigger("quick");
  expect(await start(await podOf(runId)).end).toBe("ended");
  expect(await rig.ended(id)).toBe("success");
  expect(await rig.output(id, "work")).toBe(42);
  const jobs = await rig.db.rows(
    adhoc(
      "SELECT j.state, j.queues, j.slots FROM job j JOIN task_instance t ON t.executor_job = j.id WHERE t.dag_run_id = $1",
    ),
    [id],
  );
  expect(jobs).toEqual([{ state: "stopped", queues: null, slots: 1 }]);
});

it("does nothing when its assignment is not wanted any more", async () => {
  const { id, runId } = await trigger("quick");
  const pod = await podOf(runId);
  await rig.cancel(id);
  await kubernetes.until(() => kubernetes.pod(pod.name) === undefined);
  expect(await start(pod).end).toBe("superseded");
});

it("runs nothing twice: the second pod of an assignment has nothing to do", async () => {
  const { id, runId } = await trigger("slow");
  const pod = await podOf(runId);
  const first = start(pod);
  await note(`started-${runId}`);
  expect(await start(pod).end).toBe("superseded");
  await writeFile(join(rig.root, `go-${runId}`), "");
  expect(await first.end).toBe("ended");
  expect(await rig.ended(id)).toBe("success");
});

it("may claim no other assignment", async () => {
  const [one, two] = [await trigger("quick"), await trigger("quick")];
  const [mine, other] = [await podOf(one.runId), await podOf(two.runId)];
  const { end } = start({ ...mine, assignment: other.assignment });
  await expect(end).rejects.toThrow(/A launch token is valid for its own assignment only/);
});

it("is rejected with a forged token", async () => {
  const { runId } = await trigger("quick");
  const pod = await podOf(runId);
  const error = await start({ ...pod, token: `${pod.token.slice(0, -2)}xx` }).end.catch((reason) => reason);
  expect(error).toBeInstanceOf(PodWorkerError);
  expect(error).toMatchObject({ status: 401, message: expect.stringContaining(url) });
});

it("gives up when the API cannot be reached for too long", async () => {
  const { runId } = await trigger("quick");
  const pod = await podOf(runId);
  const error = await start(pod, { url: "http://127.0.0.1:1", patienceMs: 300 }).end.catch(
    (reason) => reason,
  );
  expect(error).toBeInstanceOf(PodWorkerError);
  expect(error).toMatchObject({
    status: 0,
    message: expect.stringContaining(
      "The API at http://127.0.0.1:1 does not let this pod run its task: it cannot be reached",
    ),
  });
});

it("lets its task finish when the pod is to end", async () => {
  const { id, runId } = await trigger("slow");
  const worker = start(await podOf(runId), { env: { TRADEWIND_LOG_LEVEL: "error", TRADEWIND_DRAIN: "60s" } });
  await note(`started-${runId}`);
  worker.stop();
  await writeFile(join(rig.root, `go-${runId}`), "");
  expect(await worker.end).toBe("ended");
  expect(await rig.ended(id)).toBe("success");
});

it("hands its task back when the pod has to end before: another pod runs the same try", async () => {
  const { id, runId } = await trigger("slow");
  const first = await podOf(runId);
  const worker = start(first);
  await note(`started-${runId}`);
  worker.stop();
  expect(await worker.end).toBe("handed back");
  const second = await podOf(runId, first);
  await writeFile(join(rig.root, `go-${runId}`), "");
  expect(await start(second).end).toBe("ended");
  expect(await rig.ended(id)).toBe("success");
  expect((await rig.tasks(id))["work"]?.try_number).toBe(1);
});
