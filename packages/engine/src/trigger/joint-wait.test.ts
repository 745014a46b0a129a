/** Joint waits in a real child process. */
import type { Json, TriggerCall } from "@tradewind/sdk/manifest";
import { expect, it } from "vitest";
import { RunnerUnderTest, triggerText } from "../../test/trigger/runner-under-test.ts";

function call(kind: string, args: Json = {}, more: Partial<TriggerCall> = {}): TriggerCall {
  return { kind, args, source: "bundle", queue: "default", replicas: 1, wake: null, timed: null, ...more };
}

function members(all: Readonly<Record<string, TriggerCall>>): Json {
  return { members: all } as unknown as Json;
}

const TRIGGERS = [
  triggerText(
    "fires",
    `yield args.payload; console.log("stored " + args.payload);`,
    `console.log("cleaned");`,
  ),
  triggerText(
    "waits",
    `await new Promise((resolve) => host.abort.addEventListener("abort", resolve)); yield 1;`,
  ),
  triggerText("throws", `throw Object.assign(new RangeError("too far"), { code: "ERR_FAR" });`),
  triggerText("returns", `return;`),
  triggerText("ends", `yield { ending: { kind: "skipped", reason: "no need" } };`),
].join("\n");

it("fires once, with the first event of each member, and acknowledges each event", async () => {
  const under = await RunnerUnderTest.start();
  const bundle = await under.bundle(TRIGGERS);
  const moment = new Date(Date.now() + 50).toISOString();
  const all = members({
    b: call("fires", { payload: "B" }),
    a: call("fires", { payload: "A" }),
    file: call("tradewind.file", { path: bundle, intervalMs: 1_000 }, { source: "builtin" }),
    hour: call(
      "tradewind.datetime",
      { moment },
      { source: "builtin", wake: { at: moment }, timed: { payload: moment } },
    ),
  });
  under.run(1, "tradewind.all", bundle, all);
  const event = await under.event(1);
  expect(event).toEqual({ b: "B", a: "A", file: expect.objectContaining({ path: bundle }), hour: moment });
  expect(Object.keys(event as object)).toEqual(["b", "a", "file", "hour"]);
  expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(moment));
  expect(under.logs(1)).toEqual([]);
  under.runner.ack(1);
  await under.until(() => under.logs(1).length >= 2);
  expect(under.logs(1).slice(0, 2).sort()).toEqual(["stored A", "stored B"]);
  expect(under.outcomes(1)).toHaveLength(1);
});

it("fails with the first member that fails, and names it", async () => {
  const under = await RunnerUnderTest.start();
  const bundle = await under.bundle(TRIGGERS);
  const one = call("fires", { payload: 1 });
  under.run(1, "tradewind.all", bundle, members({ one, waits: call("waits"), bad: call("throws") }));
  const failure = {
    code: "ERR_FAR",
    message: `"bad": too far`,
    stack: expect.stringContaining("RangeError"),
  };
  expect(await under.failure(1)).toMatchObject(failure);
  under.run(2, "tradewind.all", bundle, members({ one, none: call("returns") }));
  expect(await under.failure(2)).toMatchObject({ code: "TRIGGER_ENDED_WITHOUT_EVENT" });
  under.run(3, "tradewind.all", bundle, members({ one, odd: call("unheard-of") }));
  expect(await under.failure(3)).toMatchObject({ code: "TRIGGER_KIND_UNKNOWN" });
  under.run(4, "tradewind.all", bundle, members({}));
  expect(await under.failure(4)).toMatchObject({ code: "TRIGGER_ARGS_INVALID" });
});

it("ends the task when a member ends it", async () => {
  const under = await RunnerUnderTest.start();
  const bundle = await under.bundle(TRIGGERS);
  under.run(1, "tradewind.all", bundle, members({ waits: call("waits"), ends: call("ends") }));
  expect(await under.outcome(1)).toEqual({
    kind: "ending",
    ending: { kind: "skipped", reason: "no need" },
  });
  under.run(2, "tradewind.all", bundle, members({ one: call("fires", { payload: 1 }), ends: call("ends") }));
  expect(await under.outcome(2)).toMatchObject({ kind: "ending" });
});

it("reports the members that have fired, and none after a restart of its process", async () => {
  const under = await RunnerUnderTest.start();
  const bundle = await under.bundle(TRIGGERS);
  const all = members({ one: call("fires", { payload: 1 }), two: call("waits") });
  const reports = () => under.reports.flatMap((each) => (each.on === "members" ? [each.fired] : []));
  under.run(1, "tradewind.all", bundle, all);
  await under.until(() => reports().length === 2);
  expect(reports()).toEqual([[], ["one"]]);
  process.kill(under.runner.pid!, "SIGKILL");
  await under.until(() => reports().length === 4);
  expect(reports()).toEqual([[], ["one"], [], ["one"]]);
});
