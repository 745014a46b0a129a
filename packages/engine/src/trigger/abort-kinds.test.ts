/** What a trigger is told when a process runs it no longer: only one kind means that no task waits any more. */
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
  // Something that fires in the same process later: the trigger before it is under way by then.
  await rig.outcome((await rig.wait("demo.now", await rig.bundle("demo.now", "yield 1;"))).attempt);
  const told = async () => {
    const text = () => (existsSync(mark) ? readFileSync(mark, "utf8") : "");
    await rig.until(() => text() !== "", "the trigger to be aborted");
    return text();
  };
  return { running, told, ...wait };
}

it('is "cancelled" when no task waits any more', async () => {
  const { attempt, told } = await waiting();
  await rig.db.rows(
    adhoc("UPDATE deferral SET waits_on = NULL, ended_at = now(), end_kind = 'timeout' WHERE attempt = $1"),
    [attempt],
  );
  await rig.tell("unwaited");
  expect(await told()).toBe("AbortError cancelled");
});

it('is "moved" when another triggerer has it', async () => {
  const { told, triggerId } = await waiting();
  const other = await seedTriggerer(rig.db);
  await rig.db.rows(adhoc("UPDATE trigger SET owner_job = $2 WHERE id = $1"), [triggerId, other]);
  await rig.tell("dags");
  expect(await told()).toBe("AbortError moved");
});

it('is "stopped" when its triggerer ends', async () => {
  const { running, told } = await waiting();
  await running.stop();
  expect(await told()).toBe("AbortError stopped");
});
