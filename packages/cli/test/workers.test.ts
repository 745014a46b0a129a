/** `tradewind workers`, with a real standalone, Redis, and worker processes. */
import { writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { httpServer } from "../../engine/test/support/http-server.ts";
import type { TaskInstance } from "../src/client/resources.ts";
import type { Worker, WorkerDetail } from "../src/client/workers.ts";
import { runCaptured } from "./support/captured-host.ts";
import { RemoteInstallation, type WorkerProcess } from "./support/remote-installation.ts";

/** Its task ends when the file of its conf exists. */
const HELD = `
  import { existsSync } from "node:fs";
  import { setTimeout as sleep } from "node:timers/promises";
  import { dag } from "tradewind";
  const held = (id, queue) => dag(id, (d) => {
    d.task("hold", { queue }, async (_, ctx) => {
      while (!existsSync(ctx.params.file)) await sleep(20);
    });
  });
  export const here = held("held", "default");
  export const there = held("held_third", "third");
`;

let tw: RemoteInstallation;
let first: WorkerProcess;
let runs = 0;

beforeAll(async () => {
  tw = await RemoteInstallation.start({ "held.ts": HELD });
  first = await tw.worker("first", "--queues", "default,gpu", "--concurrency", "3", "--labels", "zone=a");
});
afterAll(() => tw.close());

/** Triggers the DAG; returns the run's id and what ends its task. */
async function trigger(dagId = "held"): Promise<{ run: string; finish: () => Promise<void> }> {
  const file = join(tw.folder, `finish-${++runs}`);
  const { dag_run_id: run } = await tw.json<{ dag_run_id: string }>(
    ...["dags", "trigger", dagId, "--conf", JSON.stringify({ file })],
  );
  return { run, finish: () => writeFile(file, "") };
}

const tasks = (run: string, dagId = "held") => tw.json<TaskInstance[]>("tasks", "list", dagId, run);
const task = async (run: string) => (await tasks(run))[0];
const isRunning = (run: string, dagId?: string) => async () =>
  (await tasks(run, dagId))[0]?.state === "running";

const runsOn = (run: string, name: string) => async () => {
  const { attempts } = await tw.json<WorkerDetail>("workers", "show", name);
  return attempts.some(({ dag_run_id }) => dag_run_id === run);
};

describe("tradewind workers", () => {
  it("lists queues, labels, slots, host, version and heartbeat of a worker", async () => {
    expect(await tw.json<Worker[]>("workers", "list")).toMatchObject([
      {
        name: "first",
        state: "alive",
        queues: ["default", "gpu"],
        labels: { zone: "a" },
        slots: 3,
        free_slots: 3,
        running: 0,
        hostname: hostname(),
        pid: first.child.pid,
        version: "0.1.0",
        end_date: null,
      },
    ]);
    const [{ heartbeat_age: age = 99 } = {}] = await tw.json<Worker[]>("workers", "list");
    expect(age).toBeLessThan(20);
    const { stdout } = await tw.tw("workers", "list", "--queue", "gpu");
    expect(stdout).toMatch(/ID +NAME +STATE +RUNNING +SLOTS +FREE +HEARTBEAT +VERSION +QUEUES/);
    expect((await tw.tw("workers", "list", "--queue", "other")).stderr).toBe("No workers match.\n");
    expect((await tw.tw("__complete", "tradewind workers drain ")).stdout).toMatch(/^first\b/);
  });

  it("shows what a worker is running, and REST shows its host and job for the task instance", async () => {
    const { finish, run } = await trigger();
    await tw.until(runsOn(run, "first"), "the start");
    const shown = await tw.json<WorkerDetail>("workers", "show", "first");
    expect(shown).toMatchObject({
      running: 1,
      free_slots: 2,
      attempts: [
        {
          kind: "attempt",
          dag_id: "held",
          dag_run_id: run,
          task_id: "hold",
          try_number: 1,
          queue: "default",
        },
      ],
    });
    const { stdout } = await tw.tw("workers", "show", String(shown.id));
    expect(stdout).toMatch(new RegExp(`held +${run} +hold +1 +default`));
    await tw.until(isRunning(run), "the report of the start");
    expect(await task(run)).toMatchObject({
      hostname: hostname(),
      executor_job: { id: shown.id, job_type: "worker", name: "first" },
    });
    expect((await tw.tw("tasks", "list", "held", run)).stdout).toMatch(/WORKER\s+hold +running .* first\n/);
    await finish();
    await tw.tw("runs", "wait", "held", run);
    expect(await task(run)).toMatchObject({
      state: "success",
      hostname: hostname(),
      executor_job: { id: shown.id, job_type: "worker", name: "first" },
    });
  });

  it("drains a worker at once: it finishes its tasks and starts nothing more until --undo", async () => {
    const before = await trigger();
    await tw.until(runsOn(before.run, "first"), "the start");
    const { stderr } = await tw.tw("workers", "drain", "first");
    expect(stderr).toBe("Worker first drains: 1 task is still running.\n");
    await first.until(/draining/);
    const after = await trigger();
    await before.finish();
    await tw.tw("runs", "wait", "held", before.run);
    expect(await tw.json<Worker[]>("workers", "list")).toMatchObject([{ state: "draining", running: 0 }]);
    await tw.until(async () => (await task(after.run))?.state === "queued", "the second run");
    expect(await task(after.run)).toMatchObject({ state: "queued", hostname: null, executor_job: null });
    await tw.tw("workers", "drain", "first", "--undo");
    await tw.until(runsOn(after.run, "first"), "the start after the drain");
    await after.finish();
    expect((await tw.tw("runs", "wait", "held", after.run)).code).toBe(0);
  });

  it("shows a worker whose process was asked to stop as draining, until its tasks have ended", async () => {
    const third = await tw.worker("third", "--queues", "third");
    const { finish, run } = await trigger("held_third");
    // What has no process yet would be handed back.
    await tw.until(isRunning(run, "held_third"), "the start");
    const ended = third.stop();
    const isDraining = async () => (await tw.json<Worker>("workers", "show", "third")).state === "draining";
    await tw.until(isDraining, "the drain");
    await finish();
    expect(await ended).toBe(0);
    expect(await tw.json<Worker>("workers", "show", "third")).toMatchObject({ state: "stopped", running: 0 });
    expect((await tw.tw("runs", "wait", "held_third", run)).code).toBe(0);
  });

  it("ends a worker whose protocol is too old, with what to do, and gives it no work", async () => {
    const old = await httpServer((request, response) => {
      const body = { ...JSON.parse(old.requests.at(-1)?.body ?? ""), protocol: 0 };
      const { authorization = "" } = request.headers;
      const headers = { authorization, "content-type": "application/json" };
      void fetch(`${tw.url}${request.url}`, { method: "POST", headers, body: JSON.stringify(body) }).then(
        async (answer) => {
          response.writeHead(answer.status, { "content-type": "application/json" });
          response.end(await answer.text());
        },
      );
    });
    const { code, stderr } = await runCaptured(["worker", "--name", "old"], {
      env: {
        TRADEWIND_HOME: join(tw.folder, "home-old"),
        TRADEWIND_URL: old.url,
        TRADEWIND_TOKEN: tw.token,
        REDIS_URL: `redis://127.0.0.1:${tw.redis.port}`,
      },
    });
    expect([code, stderr]).toEqual([5, expect.stringContaining("update the worker")]);
    expect(stderr).toContain("WORKER_VERSION");
    const all = await tw.json<Worker[]>("workers", "list", "--all");
    expect(all.map(({ name }) => name)).not.toContain("old");
  });

  it("asks before a removal", async () => {
    const { code, stderr } = await tw.tw("workers", "remove", "first");
    expect([code, stderr]).toEqual([2, expect.stringContaining("Remove worker first on")]);
    expect(await tw.json<Worker[]>("workers", "list")).toMatchObject([{ name: "first", state: "alive" }]);
  });

  it("removes a worker: its process stops, and its task starts elsewhere without using up a try", async () => {
    const { finish, run } = await trigger();
    await tw.until(runsOn(run, "first"), "the start");
    const second = await tw.worker("second");
    const { stderr } = await tw.tw("workers", "remove", "first", "--yes");
    expect(stderr).toBe("Worker first removed.\n");
    expect(await first.ended()).toBe(0);
    await tw.until(runsOn(run, "second"), "the start on the other worker");
    await finish();
    expect((await tw.tw("runs", "wait", "held", run)).code).toBe(0);
    expect(await task(run)).toMatchObject({ state: "success", try_number: 1 });
    expect(await tw.json<Worker[]>("workers", "list")).toMatchObject([{ name: "second" }]);
    expect(await second.stop()).toBe(0);
    const all = await tw.json<Worker[]>("workers", "list", "--state", "stopped", "dead");
    expect(all.map(({ name, state }) => [name, state])).toEqual([
      ["first", "dead"],
      ["second", "stopped"],
      ["third", "stopped"],
    ]);
    expect((await tw.tw("workers", "drain", "first")).stderr).toContain(
      "Worker 1 has ended (dead)".replace("1", `${all[0]?.id}`),
    );
  });

  it("names the command that lists workers for an unknown name or number", async () => {
    const unknown = await tw.tw("workers", "show", "fourth");
    expect([unknown.code, unknown.stderr]).toEqual([
      3,
      expect.stringContaining("no worker is called fourth"),
    ]);
    expect((await tw.tw("workers", "show", "999")).stderr).toContain("tradewind workers list --all");
  });
});
