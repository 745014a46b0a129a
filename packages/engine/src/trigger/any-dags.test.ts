/** `any()` in every place that takes a trigger, with real tasks and triggers. */
import { rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";

let rig: SchedulerRig;
const file = () => join(rig.root, "there");

beforeAll(async () => {
  rig = await SchedulerRig.open();
  await writeFile(file(), "");
  await rig.publish({
    "first.ts": `
      import { any, dag, FileTrigger, Operator, signal, type TaskContext, TimeDeltaTrigger, Trigger, type TriggerContext } from "tradewind";
      const path = ${JSON.stringify(file())};
      const there = new FileTrigger({ path });
      const never = new FileTrigger({ path: path + ".never" });
      const sent = signal<number>("first.sent");
      class Waits extends Trigger<{ path: string }, string> {
        static id = "acme.waits_for_abort";
        async *run({ abort }: TriggerContext) {
          await new Promise((resolve) => abort.addEventListener("abort", resolve, { once: true }));
          abort.throwIfAborted();
          yield "never";
        }
      }
      class Deferring extends Operator<void, string> {
        async execute() {
          return this.defer({ trigger: any({ never, there }), method: "go" });
        }
        async go(_: TaskContext, first: { readonly name: "never" | "there"; readonly event: { readonly path: string } }) {
          return first.name + " " + first.event.path;
        }
      }
      export default dag("first", (d) => {
        d.task("by_name", async (_, ctx) => {
          const first = await ctx.until("first", any({ waits: new Waits({ path }), there, other: signal("first.other") }));
          return first.name === "there" ? first.event.path : first.name;
        });
        d.task("by_index", async (_, ctx) => {
          const { index } = await ctx.until("first", any(never, new TimeDeltaTrigger({ delta: "10ms" }), signal("first.other")));
          return index;
        });
        d.task("by_signal", async (_, ctx) => {
          await ctx.step("send", async () => { await ctx.send(sent, 5); return 0; });
          const first = await ctx.until("first", any({ never, sent }));
          await ctx.step("send again", async () => { await ctx.send(sent, 6); return 0; });
          const { decision } = await ctx.until("nested", { there, decision: any({ six: sent.equals(6), seven: sent.equals(7) }) });
          return [first.name === "sent" && first.event.value, decision.name, decision.event.value];
        });
        d.operator("deferred", new Deferring());
        d.trigger("node", any({ never, there }));
      });
    `,
  });
  await rig.triggerer({ shared: false });
  await rig.scheduler();
  return () => rmSync(file(), { force: true });
});

it("passes the first event to a function, an operator and a graph node", async () => {
  const id = await rig.trigger("first");
  expect(await rig.ended(id)).toBe("success");
  expect(await rig.output(id, "by_name")).toBe(file());
  expect(await rig.output(id, "by_index")).toBe(1);
  expect(await rig.output(id, "by_signal")).toEqual([5, "six", 6]);
  expect(await rig.output(id, "deferred")).toBe(`there ${file()}`);
  expect(await rig.output(id, "node")).toMatchObject({ name: "there", event: { path: file() } });
}, 60_000);
