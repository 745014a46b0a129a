/** `any()` over several triggers, in a real child process. */
import type { Json, TriggerCall } from "@tradewind/sdk/manifest";
import { expect, it } from "vitest";
import { RunnerUnderTest, triggerText } from "../../test/trigger/runner-under-test.ts";

function call(kind: string, args: Json = {}, more: Partial<TriggerCall> = {}): TriggerCall {
  return { kind, args, source: "bundle", queue: "default", replicas: 1, wake: null, timed: null, ...more };
}

function members(any: Readonly<Record<string, TriggerCall>>, list = false): Json {
  return { members: any, list } as unknown as Json;
}

const moment = (at: string) => ({
  ...call("tradewind.datetime", { moment: at }),
  ...{ source: "builtin" as const, wake: { at }, timed: { payload: at } },
});

const FAR = moment("2999-01-01T00:00:00.000Z");

const TRIGGERS = [
  triggerText("fires", `yield args.payload; console.log("stored " + args.payload);`),
  triggerText("twice", `yield 1; console.log("stored 1"); yield 2; console.log("stored 2");`),
  // Errors that a trigger logs while it ends go to the engine's log.
  triggerText(
    "waits",
    `await new Promise((resolve) => host.abort.addEventListener("abort", resolve));
     host.log("error", "<" + args.name + " " + host.abort.reason.kind + ">");`,
    `host.log("error", "<cleaned up>");`,
  ),
  triggerText("throws", `throw Object.assign(new RangeError("too far"), { code: "ERR_FAR" });`),
  triggerText("ends", `yield { ending: { kind: "skipped", reason: "no need" } };`),
].join("\n");

async function started() {
  const under = await RunnerUnderTest.start();
  const bundle = await under.bundle(TRIGGERS);
  const printed = () => under.reports.flatMap((each) => (each.on === "engine" ? [each.text] : [])).join("");
  return {
    under,
    bundle,
    run: (id: number, args: Json) => under.run(id, "tradewind.any", bundle, args),
    prints: (text: string) => under.until(() => printed().includes(text)),
  };
}

it("fires with the first event and the name of its trigger, and acknowledges the event to that trigger only", async () => {
  const { under, run } = await started();
  run(1, members({ slow: call("waits", { name: "slow" }), quick: call("fires", { payload: "Q" }) }));
  expect(await under.event(1)).toEqual({ name: "quick", event: "Q" });
  expect(under.logs(1)).toEqual([]);
  under.runner.ack(1);
  await under.until(() => under.logs(1).includes("stored Q"));
  expect(under.outcomes(1)).toHaveLength(1);
});

it("names the trigger by its position if the triggers are a list", async () => {
  const { under, run } = await started();
  run(1, members({ 0: call("waits"), 1: FAR, 2: moment("2020-01-01T00:00:00.000Z") }, true));
  expect(await under.event(1)).toEqual({ index: 2, event: "2020-01-01T00:00:00.000Z" });
});

it("aborts the other triggers as cancelled, and cleans them up", async () => {
  const { under, run, prints } = await started();
  run(1, members({ slow: call("waits", { name: "slow" }), quick: call("fires", { payload: "Q" }), FAR }));
  await under.event(1);
  under.runner.ack(1);
  under.runner.stop([1], "fired");
  await prints("<slow cancelled>");
  await prints("<cleaned up>");
});

it('aborts all triggers with the reason "moved" when the wait is moved', async () => {
  const { under, run, prints } = await started();
  run(1, members({ slow: call("waits", { name: "slow" }), FAR }));
  run(2, members({ now: moment("2020-01-01T00:00:00.000Z"), FAR }));
  // Started after the wait, so the wait runs by then.
  await under.event(2);
  under.runner.stop([1], "moved");
  await prints("<slow moved>");
});

it("continues with every event of every trigger, as a schedule requires", async () => {
  const { under, run } = await started();
  run(1, members({ a: call("twice"), b: call("fires", { payload: "B" }) }));
  const events = [];
  for (const nth of [1, 2, 3]) {
    events.push(await under.event(1, nth));
    under.runner.ack(1);
  }
  expect(events).toEqual(
    expect.arrayContaining([
      { name: "a", event: 1 },
      { name: "a", event: 2 },
      { name: "b", event: "B" },
    ]),
  );
  await under.until(() => under.logs(1).length === 3);
});

it("fails and names the trigger if a trigger fails first, and ends the task if a trigger ends it", async () => {
  const { under, run } = await started();
  run(1, members({ slow: call("waits"), bad: call("throws") }));
  expect(await under.failure(1)).toMatchObject({ code: "ERR_FAR", message: `"bad": too far` });
  run(2, members({ slow: call("waits"), ends: call("ends") }));
  expect(await under.outcome(2)).toMatchObject({ kind: "ending", ending: { kind: "skipped" } });
  run(3, members({}));
  expect(await under.failure(3)).toMatchObject({ code: "TRIGGER_ARGS_INVALID" });
});

it("accepts a joint wait as a member, and can be a member of one", async () => {
  const { under, bundle, run } = await started();
  const one = call("fires", { payload: 1 });
  const first = call("tradewind.any", members({ one, slow: call("waits") }));
  under.run(1, "tradewind.all", bundle, members({ first, two: call("fires", { payload: 2 }) }));
  expect(await under.event(1)).toEqual({ first: { name: "one", event: 1 }, two: 2 });
  const both = call("tradewind.all", members({ one, two: call("fires", { payload: 2 }) }));
  run(2, members({ both, slow: call("waits") }));
  expect(await under.event(2)).toEqual({ name: "both", event: { one: 1, two: 2 } });
});
