/** The members of a wait for all that have fired, as recorded in the triggerer's row. */
import type { Json, TriggerCall } from "@tradewind/sdk/manifest";
import { it } from "vitest";
import { TriggererRig } from "../../../test/support/triggerer-rig.ts";
import { adhoc } from "../../store/database/database.ts";
import { recordWebhook } from "../../store/trigger/webhooks.ts";

function call(kind: string, args: Json, source: "builtin" | "bundle" = "builtin"): TriggerCall {
  return { kind, args, source, queue: "default", replicas: 1, wake: null, timed: null };
}
const hook = (name: string) => call("tradewind.webhook", { name, after: "2020-01-01T00:00:00.000Z" });

it("reports running and observed members until the wait ends", async () => {
  const rig = await TriggererRig.open();
  try {
    const ring = (name: string) =>
      rig.db.transaction((tx) =>
        recordWebhook(tx, { name, sender: "test", value: { body: 1, headers: {} } }),
      );
    const bundle = await rig.bundle("demo.now", "yield 1;");
    const { job } = await rig.triggerer();
    const members = {
      open: hook("open"),
      now: call("demo.now", {}, "bundle"),
      inner: call("tradewind.any", {
        members: { yes: hook("yes"), no: hook("no") },
        list: false,
      } as unknown as Json),
    };
    const args = { members } as unknown as Json;
    const { attempt } = await rig.wait("tradewind.all", bundle, { args });
    const fired = async () => {
      const sql = "SELECT facts->'fired' AS fired FROM job WHERE id = $1";
      const row = await rig.db.one<{ fired: Record<string, number[]> }>(adhoc(sql), [job.jobId]);
      return Object.values(row?.fired ?? {});
    };
    const reads = (expected: number[][]) =>
      rig.until(
        async () => JSON.stringify(await fired()) === JSON.stringify(expected),
        JSON.stringify(expected),
      );
    await reads([[1]]);
    await ring("no");
    await rig.notify("fired");
    await reads([[1, 2]]);
    await ring("open");
    await rig.notify("fired");
    await rig.outcome(attempt);
    await reads([]);
  } finally {
    await rig.close();
  }
});
