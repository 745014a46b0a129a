/** Triggers whose code keeps running after their abort are reported once, and delay nothing. */
import type { Json } from "@tradewind/sdk/manifest";
import { expect, it } from "vitest";
import { TriggererRig } from "../../test/support/triggerer-rig.ts";
import { RunnerUnderTest, triggerText } from "../../test/trigger/runner-under-test.ts";

const DEAF = `await new Promise((resolve) => setTimeout(resolve, 60_000).unref()); yield 1;`;
const TRIGGERS = [
  triggerText("deaf", `host.log("info", "up"); ${DEAF}`),
  triggerText("other", `host.log("info", "up"); ${DEAF}`),
  triggerText(
    "obeys",
    `host.log("info", "up"); await new Promise((resolve) => host.abort.addEventListener("abort", resolve));`,
  ),
  triggerText("now", `yield 1;`),
].join("\n");

async function started() {
  const under = await RunnerUnderTest.start();
  const bundle = await under.bundle(TRIGGERS);
  const stopped = async (id: number, kind: string, args: Json) => {
    under.run(id, kind, bundle, args);
    await under.until(() => under.logs(id).length > 0);
    under.runner.stop([id], "cancelled");
  };
  const reports = () => under.reports.flatMap((each) => (each.on === "ignoredAbort" ? [each.ignored] : []));
  return { under, stopped, reports };
}

it("reports a trigger that ignores its abort once per class, and none that ends", async () => {
  const { under, stopped, reports } = await started();
  await stopped(1, "obeys", {});
  await stopped(2, "deaf", { job: "a" });
  await stopped(3, "deaf", { job: "b" });
  // Stopped last: when this trigger is reported, the others have been checked.
  await stopped(4, "other", {});
  await under.reported("ignoredAbort", ({ ignored }) => ignored.id === 4);
  expect(reports()).toEqual([
    { id: 2, kind: "deaf", args: '{"job":"a"}', ms: expect.any(Number) },
    expect.objectContaining({ id: 4, kind: "other" }),
  ]);
  expect(reports()[0]!.ms).toBeGreaterThanOrEqual(1_900);
});

it("reports a member of a joint wait without delaying the event of the other member", async () => {
  const { under, reports } = await started();
  const bundle = await under.bundle(TRIGGERS);
  const call = (kind: string): Json => ({
    ...{ kind, args: {}, source: "bundle", queue: "default", replicas: 1, wake: null, timed: null },
  });
  const args = { members: { deaf: call("deaf"), now: call("now") }, list: false };
  under.run(1, "tradewind.any", bundle, args);
  expect(await under.event(1)).toEqual({ name: "now", event: 1 });
  under.runner.ack(1);
  under.runner.stop([1], "fired");
  await under.reported("ignoredAbort");
  expect(reports()).toMatchObject([{ id: 1, kind: "deaf" }]);
});

it("writes to the log of the task that waited for the trigger", async () => {
  const rig = await TriggererRig.open();
  try {
    await rig.triggerer();
    const bundle = await rig.bundle("demo.goes_on", `yield 1; ${DEAF}`);
    const { attempt } = await rig.wait("demo.goes_on", bundle);
    await rig.outcome(attempt);
    const warning = async () => (await rig.log(attempt)).find(({ level }) => level === "warn");
    await rig.until(async () => (await warning()) !== undefined, "the warning");
    expect((await warning())!.message).toMatch(/^Trigger "demo.goes_on" ignores abort: .* pass abort of run/);
  } finally {
    await rig.close();
  }
});
