/** `any()` over triggers that the engine observes and triggers that run in a trigger process. */
import { existsSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Json, TriggerCall } from "@tradewind/sdk/manifest";
import { beforeEach, describe, expect, it } from "vitest";
import { seedDag } from "../../test/support/catalogue-seed.ts";
import { LONG_LEASE, TriggererRig } from "../../test/support/triggerer-rig.ts";
import type { TriggerOutcome } from "../model/index.ts";
import { adhoc } from "../store/database/database.ts";
import { recordWebhook } from "../store/trigger/webhooks.ts";
import { EngineTriggers } from "./engine/engine-triggers.ts";

let rig: TriggererRig;
beforeEach(async () => {
  rig = await TriggererRig.open();
  return () => rig.close();
});

function call(kind: string, args: Json, source: "builtin" | "bundle" = "builtin"): TriggerCall {
  return { kind, args, source, queue: "default", replicas: 1, wake: null, timed: null };
}

const any = (members: Readonly<Record<string, TriggerCall>>): Json =>
  ({ members, list: false }) as unknown as Json;
const hook = (name: string) => call("tradewind.webhook", { name, after: "2020-01-01T00:00:00.000Z" });
const ring = (name: string, body: Json) =>
  rig.db.transaction((tx) => recordWebhook(tx, { name, sender: "test", value: { body, headers: {} } }));

describe("any() in a task", () => {
  it("ends with the event of an observed member, and aborts the running one as cancelled", async () => {
    const mark = join(rig.root, "mark");
    const bundle = await rig.bundle(
      "demo.waits",
      `await new Promise((resolve) => host.abort.addEventListener("abort", resolve));
       (await import("node:fs")).writeFileSync(args.mark, host.abort.reason.kind);`,
    );
    const { job } = await rig.triggerer({ lease: LONG_LEASE });
    const args = any({ job: call("demo.waits", { mark }, "bundle"), paid: hook("paid") });
    const { attempt } = await rig.wait("tradewind.any", bundle, { args });
    await rig.until(() => job.size === 1, "the trigger to run");
    await ring("paid", "now");
    await rig.notify("fired");
    expect(await rig.outcome(attempt)).toEqual({
      kind: "event",
      payload: { name: "paid", event: { body: "now", headers: {} } },
      calls: { paid: expect.any(Number) },
    });
    await rig.until(() => existsSync(mark) && readFileSync(mark, "utf8") !== "", "the abort");
    expect(readFileSync(mark, "utf8")).toBe("cancelled");
  });

  it("ends with the event of a running member, and consumes no call of a webhook", async () => {
    const bundle = await rig.bundle("demo.now", "yield 1;");
    await rig.triggerer({ lease: LONG_LEASE });
    const args = any({ now: call("demo.now", {}, "bundle"), paid: hook("paid") });
    const { attempt } = await rig.wait("tradewind.any", bundle, { args });
    expect(await rig.outcome(attempt)).toEqual({ kind: "event", payload: { name: "now", event: 1 } });
  });

  it("accepts a joint wait of observed members as a member, and can be a member of one", async () => {
    const bundle = await rig.bundle("demo.now", "yield 1;");
    await rig.triggerer({ lease: LONG_LEASE });
    const decision = call("tradewind.any", any({ yes: hook("yes"), no: hook("no") }));
    const inside = await rig.wait("tradewind.all", bundle, {
      args: any({ now: call("demo.now", {}, "bundle"), decision }),
    });
    const both = call("tradewind.all", any({ yes: hook("yes"), no: hook("no") }));
    const around = await rig.wait("tradewind.any", null, { args: any({ both, never: hook("never") }) });
    await ring("no", "sorry");
    await ring("yes", "sure");
    await rig.notify("fired");
    expect(await rig.outcome(inside.attempt)).toMatchObject({
      payload: { now: 1, decision: { name: expect.stringMatching(/yes|no/) } },
    });
    expect(await rig.outcome(around.attempt)).toMatchObject({
      payload: { name: "both", event: { yes: { body: "sure" }, no: { body: "sorry" } } },
      calls: { yes: expect.any(Number), no: expect.any(Number) },
    });
  });

  it("fails when a joint wait inside mixes observed and running members", async () => {
    await rig.triggerer({ lease: LONG_LEASE });
    const mixed = call("tradewind.all", any({ yes: hook("yes"), file: call("tradewind.file", {}) }));
    const { attempt } = await rig.wait("tradewind.any", null, { args: any({ mixed, no: hook("no") }) });
    expect(await rig.outcome(attempt)).toMatchObject({
      kind: "failed",
      error: { code: "TRIGGER_ARGS_INVALID" },
    });
  });
});

describe("the second event of any()", () => {
  const running: TriggerOutcome = { kind: "event", payload: { name: "now", event: 1 }, key: null };
  const trigger = () => ({
    ...{
      id: 7,
      kind: "tradewind.any",
      bundle_hash: null,
      dag_id: null,
      replicas: 1 as const,
      created_at: new Date(),
    },
    args: any({ now: call("demo.now", {}, "bundle"), paid: hook("paid") }),
  });

  it("is dropped and not acknowledged if a running member yields it", async () => {
    await ring("paid", "now");
    const triggers = new EngineTriggers(rig.db);
    expect(triggers.add(trigger())).toMatchObject({ list: false, members: { now: { kind: "demo.now" } } });
    const [found] = await triggers.read();
    const { outcome } = found as Extract<typeof found, { kind: "outcome" }>;
    expect(triggers.merge(7, running)).toBeNull();
    expect(triggers.merge(7, outcome)).toBe(outcome);
    expect(triggers.wantsAck(7)).toBe(false);
  });

  it("is dropped if it comes from an observed member", async () => {
    await ring("paid", "now");
    const triggers = new EngineTriggers(rig.db);
    triggers.add(trigger());
    expect(triggers.merge(7, running)).toBe(running);
    expect(await triggers.read()).toEqual([]);
    expect(triggers.wantsAck(7)).toBe(true);
  });
});

it("creates one run per event as a schedule, also after a takeover", async () => {
  await seedDag(rig.db, "feed");
  const file = (name: string) => call("tradewind.file", { path: join(rig.root, name), intervalMs: 100 });
  await rig.trigger("tradewind.any", null, { dagId: "feed", args: any({ a: file("a"), b: file("b") }) });
  const names = async () =>
    (
      await rig.db.rows<{ name: string }>(
        adhoc("SELECT conf->'event'->>'name' AS name FROM dag_run WHERE dag_id = 'feed' ORDER BY id"),
      )
    ).map(({ name }) => name);
  const first = await rig.triggerer({ lease: LONG_LEASE });
  await writeFile(join(rig.root, "a"), "");
  await rig.until(async () => (await names()).length === 1, "the first run");
  await writeFile(join(rig.root, "b"), "");
  await rig.until(async () => (await names()).length === 2, "the second run");
  await first.stop();
  const second = await rig.triggerer({ lease: LONG_LEASE });
  await rig.until(() => second.job.size === 1, "the schedule to be taken over");
  await writeFile(join(rig.root, "b"), "changed");
  await rig.until(async () => (await names()).length === 3, "the third run");
  expect(await names()).toEqual(["a", "b", "b"]);
});
