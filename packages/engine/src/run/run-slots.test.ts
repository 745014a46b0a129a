/** Runs that need the slot of a later run get it at once. The scheduler renews its lease rarely: sweeps do not help. */
import { writeFileSync } from "node:fs";
import { beforeAll, expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { WakeUps } from "../job/wake-up.ts";
import { adhoc } from "../store/database/database.ts";

let rig: SchedulerRig;
const RARELY = { ttlMs: 600_000, renewMs: 300_000, marginMs: 1_000 };

beforeAll(async () => {
  rig = await SchedulerRig.open();
  await rig.publish({
    "slots.ts": `
      import { dag } from "tradewind";
      import { existsSync } from "node:fs";
      const open = async (name) => {
        while (!existsSync(${JSON.stringify(rig.root)} + "/" + name)) await new Promise((go) => setTimeout(go, 10));
      };
      const fail = () => { throw new Error("the first date fails"); };
      const build = (d) => {
        const before = d.task("before", (_, c) => c.run.id === "slow" ? open("slow") : undefined);
        d.task("a", { after: before, dependsOnPast: true }, (_, c) => c.run.logicalDate.getUTCDate() === 1 ? fail() : 1);
      };
      export const one = dag("one", { maxActiveRuns: 1 }, build);
      export const two = dag("two", { maxActiveRuns: 1 }, build);
      export const shared = dag("shared", (d) => {
        d.task("a", { dependsOnPast: true }, () => 1);
        d.task("long", () => open("long"));
      });
    `,
  });
  await rig.scheduler({ lease: RARELY });
});

const at = (day: number) => ({ logicalDate: new Date(Date.UTC(2020, 0, day)) });
const reaches = (id: number, state: string) =>
  rig.until(async () => (await rig.run(id)).state === state, `run ${id} to be ${state}`, 10_000);
const waitsForPast = (id: number) =>
  rig.until(async () => {
    const { a, before } = await rig.states(id);
    return before === "success" && a === "pending";
  }, `run ${id} to wait for an earlier run`);

it("a manual run takes the slot of a later run that waits for it", async () => {
  expect(await rig.ended(await rig.trigger("one", at(1)))).toBe("failed");
  const late = await rig.trigger("one", at(9));
  await waitsForPast(late);
  const early = await rig.trigger("one", at(5));
  await reaches(early, "running");
  expect((await rig.run(late)).state).toBe("queued");
});

it("a manual run takes the slot as soon as the later run has no other task to run", async () => {
  expect(await rig.ended(await rig.trigger("two", at(1)))).toBe("failed");
  const late = await rig.trigger("two", { ...at(9), runId: "slow" });
  await rig.until(async () => (await rig.states(late)).before === "running", "the later run to run a task");
  const early = await rig.trigger("two", at(5));
  // When this run has started, the scheduler has looked for slots.
  await reaches(await rig.trigger("shared"), "running");
  expect((await rig.run(early)).state).toBe("queued");
  writeFileSync(`${rig.root}/slow`, "");
  await reaches(early, "running");
  expect((await rig.run(late)).state).toBe("queued");
});

it("a task starts when a new version of its DAG raises the limit that blocks it", async () => {
  const publish = (most: number) =>
    rig.publish({
      "limited.ts": `
        import { dag } from "tradewind";
        import { existsSync } from "node:fs";
        export default dag("limited", { maxActiveTasksPerDag: ${most} }, (d) => {
          d.task("a", { priority: 9 }, async () => {
            while (!existsSync(${JSON.stringify(rig.root)} + "/limited")) await new Promise((go) => setTimeout(go, 10));
          });
          d.task("b", () => 1);
        });
      `,
    });
  await publish(1);
  const id = await rig.trigger("limited");
  await rig.until(async () => (await rig.states(id)).a === "running", "the first task to run");
  expect((await rig.states(id)).b).toBe("scheduled");
  await publish(2);
  await rig.until(async () => (await rig.states(id)).b === "success", "the second task to run", 10_000);
  writeFileSync(`${rig.root}/limited`, "");
  expect(await rig.ended(id)).toBe("success");
});

it("other schedulers receive a wake-up when a task ends that the next run may wait for", async () => {
  await rig.scheduler({ lease: RARELY, shared: false, parallelism: 1 });
  const others = new WakeUps(rig.db);
  const topics: string[] = [];
  const listening = await others.listen((topic) => topics.push(topic));
  const id = await rig.trigger("shared", at(1));
  await rig.until(async () => topics.includes("ended"), "the wake-up", 10_000);
  const states = await rig.db.rows(adhoc("SELECT state FROM dag_run WHERE id = $1"), [id]);
  expect(states).toEqual([{ state: "running" }]);
  writeFileSync(`${rig.root}/long`, "");
  await rig.ended(id);
  await listening.close();
  others.close();
});
