/** The heartbeat of a worker: the API server dies before or after, loses the answer, two arrive at once, one is late. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { httpProxy } from "../../support/http-proxy.ts";
import { isAlive } from "../../support/process-alive.ts";
import { RemoteRig } from "../../support/remote-rig.ts";

const RENEW = "worker-renew";

const remote = RemoteRig.ofFile((root) => ({
  "remote.ts": `
    import { dag } from "tradewind";
    import { appendFileSync, existsSync } from "node:fs";
    import { setTimeout as sleep } from "node:timers/promises";
    const root = ${JSON.stringify(root)};
    export const one = dag("one", { maxActiveRuns: 200 }, (d) => { d.task("work", () => 1); });
    export const gated = dag("gated", {}, (d) => {
      d.task("work", { queue: "cut" }, async (_, ctx) => {
        appendFileSync(root + "/" + ctx.run.id, process.pid + "\\n");
        while (!existsSync(root + "/" + ctx.run.id + ".open")) await sleep(10, undefined, { signal: ctx.abort });
      });
    });
  `,
}));

beforeEach(async () => {
  await remote.scheduler();
});

async function leaseOf(worker: { readonly id: number }): Promise<number> {
  const [row] = await remote.sql<{ lease_until: Date }>("SELECT lease_until FROM job WHERE id = $1", [
    worker.id,
  ]);
  return row?.lease_until.getTime() ?? 0;
}

describe("the API server", () => {
  it("dies before: the worker renews with another server, and keeps its assignment", async () => {
    const mortal = await remote.api();
    const run = await remote.rig.trigger("one");
    const worker = await remote.scripted({ api: mortal });
    const claim = await worker.take(await remote.assigned(run, "work"));
    const before = await leaseOf(worker);
    const died = mortal.faults.diesAt("before", RENEW);
    const beat = worker.beat([claim.assignment.id]);
    await died;
    await expect(beat).rejects.toMatchObject({ isTransient: true });
    expect(await leaseOf(worker)).toBe(before);
    worker.reach(remote.server);
    await remote.rig.cancel(run);
    expect((await worker.beat([claim.assignment.id])).superseded).toEqual([claim.assignment.id]);
    expect(await leaseOf(worker)).toBeGreaterThan(before);
  });

  it("dies after: the lease is renewed, and the next heartbeat brings the orders", async () => {
    const mortal = await remote.api();
    const run = await remote.rig.trigger("one");
    const worker = await remote.scripted({ api: mortal });
    const claim = await worker.take(await remote.assigned(run, "work"));
    const before = await leaseOf(worker);
    await remote.rig.cancel(run);
    const died = mortal.faults.diesAt("after", RENEW);
    const beat = worker.beat([claim.assignment.id]);
    await died;
    await expect(beat).rejects.toMatchObject({ isTransient: true });
    expect(await leaseOf(worker)).toBeGreaterThan(before);
    worker.reach(remote.server);
    expect((await worker.beat([claim.assignment.id])).superseded).toEqual([claim.assignment.id]);
  });
});

it("lost answer: orders are repeated until the worker follows them", async () => {
  const proxy = await httpProxy(remote.server.url);
  const run = await remote.rig.trigger("one");
  const worker = await remote.scripted({ api: proxy });
  const claim = await worker.take(await remote.assigned(run, "work"));
  const { id } = claim.assignment;
  await remote.rig.cancel(run);
  const lost = proxy.losesAnswerTo(/heartbeat/);
  await expect(worker.beat([id])).rejects.toMatchObject({ isTransient: true });
  await lost;
  expect((await worker.beat([id])).superseded).toEqual([id]);
});

it("two at once: both are answered with the same orders", async () => {
  const run = await remote.rig.trigger("one");
  const worker = await remote.scripted();
  const claim = await worker.take(await remote.assigned(run, "work"));
  const { id } = claim.assignment;
  const beats = [worker.beat([id]), worker.beat([id])];
  await remote.rig.cancel(run);
  expect((await Promise.all(beats)).map(({ superseded }) => superseded)).toEqual([[id], [id]]);
});

it("late: a worker that was cut off for longer than its lease stops its tasks, registers again and takes new ones", async () => {
  const quick = await remote.api({ leaseMs: 1_500 });
  const proxy = await httpProxy(quick.url);
  await remote.worker({ url: proxy.url, queues: ["cut"] });
  const run = await remote.rig.trigger("gated", { runId: "cut" });
  const pids = () => {
    const path = join(remote.rig.root, "cut");
    return existsSync(path) ? readFileSync(path, "utf8").trim().split("\n").map(Number) : [];
  };
  await remote.rig.until(async () => pids().length === 1, "its start");
  const [pid = 0] = pids();
  proxy.set("hang");
  const first = await remote.assigned(run, "work");
  await remote.rig.until(async () => !isAlive(pid), "the end of its process");
  await remote.reassigned(run, "work", first);
  proxy.set("pass");
  await remote.rig.until(async () => pids().length === 2, "its second start");
  writeFileSync(join(remote.rig.root, "cut.open"), "");
  expect(await remote.rig.ended(run)).toBe("success");
  expect(await remote.rig.tasks(run)).toMatchObject({ work: { try_number: 1 } });
  expect(await remote.lost(run, "work")).toMatchObject([{ attempt: first }]);
});

it("late: a heartbeat after the worker was declared dead is rejected", async () => {
  const worker = await remote.scripted();
  await remote.expire(worker.id);
  await remote.is("SELECT 1 FROM job WHERE id = $1 AND state = 'dead'", [worker.id]);
  await expect(worker.beat()).rejects.toMatchObject({ status: 410, code: "WORKER_EXPIRED" });
  await worker.register();
  const run = await remote.rig.trigger("one");
  await worker.succeeded(await worker.take(await remote.assigned(run, "work")), 1);
  expect(await remote.rig.ended(run)).toBe("success");
});
