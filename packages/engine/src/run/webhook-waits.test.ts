/** Tasks that wait for webhook calls that arrive before the wait, or more than once. */
import { beforeAll, expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { recordWebhook } from "../store/trigger/webhooks.ts";

let rig: SchedulerRig;

beforeAll(async () => {
  rig = await SchedulerRig.open();
  await rig.publish({
    "hooks.ts": `
      import { all, dag, Operator, type TaskContext, type WebhookEvent, WebhookSensor, WebhookTrigger } from "tradewind";
      import { existsSync, writeFileSync } from "node:fs";
      import { setTimeout as sleep } from "node:timers/promises";
      const gate = async (name: string) => {
        writeFileSync(${JSON.stringify(`${rig.root}/`)} + name, "");
        while (!existsSync(${JSON.stringify(`${rig.root}/`)} + name + "-open")) await sleep(20);
      };
      const hook = (name: string) => new WebhookTrigger({ name });

      class Three extends Operator<void, unknown[]> {
        execute() { return this.defer({ trigger: hook("a"), method: "second", kwargs: {} }); }
        second(_ctx: TaskContext, event: WebhookEvent) {
          return this.defer({ trigger: hook("b"), method: "third", kwargs: { had: [event.body] } });
        }
        third(_ctx: TaskContext, event: WebhookEvent, { had }: { had: unknown[] }) {
          return this.defer({ trigger: hook("a"), method: "last", kwargs: { had: [...had, event.body] as never[] } });
        }
        last(_ctx: TaskContext, event: WebhookEvent, { had }: { had: unknown[] }) { return [...had, event.body] as never; }
      }

      export default dag("hooks", (d) => {
        const before = d.task("before", () => gate("before"));
        d.task("steps", { after: before }, async (_, ctx) => {
          const first = await ctx.until("first", hook("a"));
          const both = await ctx.until("both", all({ a: hook("a"), b: hook("b") }));
          return [first.body, both.a.body, both.b.body];
        });
        d.operator("methods", new Three(), { after: before });
        d.trigger("node", hook("a"), { after: before });
        d.operator("sensor", new WebhookSensor({ name: "a" }), { after: before });
        d.operator("poke", new WebhookSensor({ name: "a", mode: "poke", interval: 20 }), { after: before });
        d.task("later", { after: before }, async (_, ctx) =>
          (await ctx.until("third", new WebhookTrigger({ name: "a", after: new Date(Date.now() + 3_600_000) }), { timeout: 500 }).catch(() => ({ body: "none" }))).body);
      });`,
  });
  await rig.triggerer();
});

const ring = async (name: string, body: string) => {
  await rig.db.transaction((tx) => recordWebhook(tx, { name, sender: "test", value: { body, headers: {} } }));
  rig.wakeUps.send("fired");
};

it("counts webhook calls since the run began, each once per task, in every kind of wait", async () => {
  const { existsSync, writeFileSync } = await import("node:fs");
  await ring("a", "too early");
  await rig.scheduler();
  const id = await rig.trigger("hooks");
  await rig.until(async () => existsSync(`${rig.root}/before`), "the run to begin");
  for (const [name, body] of [
    ["a", "a1"],
    ["b", "b1"],
    ["a", "a2"],
  ] as const)
    await ring(name, body);
  writeFileSync(`${rig.root}/before-open`, "");
  expect(await rig.ended(id)).toBe("success");
  expect(await rig.output(id, "steps")).toEqual(["a1", "a2", "b1"]);
  expect(await rig.output(id, "methods")).toEqual(["a1", "b1", "a2"]);
  for (const task of ["node", "sensor", "poke"])
    expect(await rig.output(id, task)).toEqual({ body: "a1", headers: {} });
  expect(await rig.output(id, "later")).toBe("none");
}, 60_000);
