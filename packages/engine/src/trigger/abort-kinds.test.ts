/** The reason that a trigger receives in `abort` when its process stops it. Only "cancelled" means that no task waits any more. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { seedTriggerer } from "../../test/support/trigger-seed.ts";
import { LONG_LEASE, TriggererRig } from "../../test/support/triggerer-rig.ts";
import { adhoc } from "../store/database/database.ts";

let rig: TriggererRig;
beforeEach(async () => {
  rig = await TriggererRig.open();
  return () => rig.close();
});

const TELLS = `
  await new Promise((resolve) => host.abort.addEventListener("abort", resolve));
  (await import("node:fs")).writeFileSync(args.mark, host.abort.reason.name + " " + host.abort.reason.kind);`;

async function waiting() {
  const running = await rig.triggerer({ lease: LONG_LEASE });
  const mark = join(rig.root, "mark");
  const wait = await rig.wait("demo.tells", await rig.bundle("demo.tells", TELLS), { args: { mark } });
  await rig.until(() => running.job.size === 1, "the trigger to run");
  // A trigger that fires later in the same process: the first trigger has started by then.
  await rig.outcome((await rig.wait("demo.now", await rig.bundle("demo.now", "yield 1;"))).attempt);
  const told = async () => {
    const text = () => (existsSync(mark) ? readFileSync(mark, "utf8") : "");
    await rig.until(() => text() !== "", "the trigger to be aborted");
    return text();
  };
  return { running, told, ...wait };
}

it("aborts a trigger as cancelled when no task waits for it any more", async () => {
  const { attempt, told } = await waiting();
  await rig.db.rows(
    adhoc("UPDATE deferral SET waits_on = NULL, ended_at = now(), end_kind = 'timeout' WHERE attempt = $1"),
    [attempt],
  );
  await rig.notify("unwaited");
  expect(await told()).toBe("AbortError cancelled");
});

it("aborts a trigger as moved when another triggerer owns it", async () => {
  const { told, triggerId } = await waiting();
  const other = await seedTriggerer(rig.db);
  await rig.db.rows(adhoc("UPDATE trigger SET owner_job = $2 WHERE id = $1"), [triggerId, other]);
  await rig.notify("dags");
  expect(await told()).toBe("AbortError moved");
});

it("aborts a trigger as stopped when its triggerer stops", async () => {
  const { running, told } = await waiting();
  await running.stop();
  expect(await told()).toBe("AbortError stopped");
});
