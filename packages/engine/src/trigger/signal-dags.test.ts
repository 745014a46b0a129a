/** Signals between DAGs, with real tasks: one DAG sends, another is scheduled on the signal, a third waits for it. */
import { beforeAll, expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database/database.ts";

let rig: SchedulerRig;

beforeAll(async () => {
  rig = await SchedulerRig.open();
  await rig.publish({
    "signals.ts": `
      import { all, conf, dag, on, signal } from "tradewind";
      const paid = signal<{ order: string }>("order.paid");
      const packed = signal<{ order: string }>("order.packed");
      const sent = signal<{ order: string; by: string }>("order.sent");

      export const shop = dag("shop", {}, (d) => {
        d.task("sell", async (_, ctx) => {
          await ctx.send(paid, { order: "A-1" });
          await ctx.send(paid, { order: "A-2" }, { onSuccess: true });
          await ctx.send(paid, { order: "A-1" });
        });
      });
      export const shipping = dag("shipping", { schedule: on(paid, { route: "order" }) }, (d) => {
        d.task("pack", async (_, ctx) => {
          const order = ctx.params.signal?.value.order ?? "?";
          await ctx.send(packed, { order });
          const { value } = await ctx.until("sent", sent.where({ order: conf("signal.value.order") }));
          return order + " by " + value.by;
        });
      });
      export const paperwork = dag("paperwork", { schedule: on(all(paid, packed)) }, (d) => {
        d.task("print", (_, ctx) => Object.keys(ctx.params.signals ?? {}).sort());
      });
      export const twice = dag("twice", {}, (d) => {
        d.task("wait", async (_, ctx) => {
          const mine = signal<number>("mine").inRun();
          await ctx.step("send", async () => { await ctx.send(signal<number>("mine"), 1); await ctx.send(signal<number>("mine"), 2); return 0; });
          const first = await ctx.until("first", mine);
          const second = await ctx.until("second", mine);
          return [first.value, second.value];
        });
      });
      const isNumber = {
        "~standard": {
          version: 1 as const,
          vendor: "test",
          validate: (value: unknown) => typeof value === "number" ? { value } : { issues: [{ message: "no number" }] },
          types: {} as { input: number; output: number },
        },
      };
      export const strict = dag("strict", {}, (d) => {
        d.task("wait", { retries: 3 }, async (_, ctx) => {
          await ctx.step("send", async () => { for (const value of ["one", null, 3]) await ctx.send(signal("strict"), value); return 0; });
          const { value } = await ctx.until("number", signal("strict", isNumber).inRun(), { timeout: "1m" });
          return [value, ctx.tryNumber];
        });
      });
      export const carrier = dag("carrier", {}, (d) => {
        d.task("send", async (_, ctx) => {
          await ctx.send(sent, { order: "A-2", by: "ship" });
          await ctx.send(sent, { order: "A-1", by: "rail" });
        });
      });
    `,
  });
  await rig.triggerer({ shared: false });
  await rig.scheduler();
});

const runs = (dagId: string) =>
  rig.db.rows<{ id: number; run_id: string; state: string }>(
    adhoc("SELECT id, run_id, state FROM dag_run WHERE dag_id = $1 ORDER BY id"),
    [dagId],
  );

it("starts runs of another DAG with a task's signals, and ends its waits", async () => {
  expect(await rig.ended(await rig.trigger("shop"))).toBe("success");
  await rig.until(async () => (await runs("shipping")).length === 2, "two orders");
  const orders = await runs("shipping");
  expect(orders.map(({ run_id }) => run_id)).toEqual(["signal__A-1", "signal__A-2"]);
  await rig.until(async () => {
    const states = await Promise.all(orders.map(({ id }) => rig.states(id)));
    return states.every(({ pack }) => pack === "deferred");
  }, "both to wait");
  await rig.ended(await rig.trigger("carrier"));
  for (const { id } of orders) expect(await rig.ended(id)).toBe("success");
  expect(await rig.output(orders[0]!.id, "pack")).toBe("A-1 by rail");
  expect(await rig.output(orders[1]!.id, "pack")).toBe("A-2 by ship");
  await rig.until(async () => (await runs("paperwork")).length >= 1, "the paperwork");
  const [first] = await runs("paperwork");
  expect(await rig.ended(first!.id)).toBe("success");
  expect(await rig.output(first!.id, "print")).toEqual(["order.packed", "order.paid"]);
}, 90_000);

it("gives two waits of a task for the same signal one signal each, also signals sent before", async () => {
  const [one, other] = [await rig.trigger("twice"), await rig.trigger("twice")];
  for (const id of [one, other]) {
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.output(id, "wait")).toEqual([1, 2]);
  }
}, 60_000);

it("skips signals that the schema rejects, in the same try", async () => {
  const id = await rig.trigger("strict");
  expect(await rig.ended(id)).toBe("success");
  expect(await rig.output(id, "wait")).toEqual([3, 1]);
});
