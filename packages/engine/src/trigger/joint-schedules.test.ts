/** Joint waits as a schedule: one run after all triggers have fired, and no second run for the same events. */
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Json, TriggerCall } from "@tradewind/sdk/manifest";
import { beforeEach, expect, it } from "vitest";
import { seedDag } from "../../test/support/catalogue-seed.ts";
import { LONG_LEASE, TriggererRig } from "../../test/support/triggerer-rig.ts";
import { adhoc } from "../store/database/database.ts";
import { recordWebhook } from "../store/trigger/webhooks.ts";

let rig: TriggererRig;
beforeEach(async () => {
  rig = await TriggererRig.open();
  await seedDag(rig.db, "feed");
  await seedDag(rig.db, "other");
  return () => rig.close();
});

function call(kind: string, args: Json, more: Partial<TriggerCall> = {}): TriggerCall {
  return { kind, args, source: "builtin", queue: "default", replicas: 1, wake: null, timed: null, ...more };
}

function schedule(members: Readonly<Record<string, TriggerCall>>, bundle: string | null = null) {
  return rig.trigger("tradewind.all", bundle, {
    dagId: "feed",
    args: { members } as unknown as Json,
  });
}

async function otherRun(runId: string, state: string): Promise<void> {
  await rig.db.rows(
    adhoc(`INSERT INTO dag_run (dag_id, run_id, run_type, state, version_id, triggered_by)
           SELECT 'other', $1, 'manual', $2, version_id, 'cli' FROM dag WHERE dag_id = 'other'`),
    [runId, state],
  );
}

const runOf = (runId: string) =>
  call("tradewind.dagrun", { dagId: "other", runId, logicalDate: null, states: ["success"] });
const hook = call("tradewind.webhook", { name: "bell", after: null });

const ring = (body: string) =>
  rig.db.transaction((tx) =>
    recordWebhook(tx, { name: "bell", sender: "test", value: { body, headers: {} } }),
  );

const events = async () =>
  (
    await rig.db.rows<{ conf: { event: Record<string, unknown> } }>(
      adhoc("SELECT conf FROM dag_run WHERE dag_id = 'feed' ORDER BY id"),
    )
  ).map(({ conf }) => conf.event);

/** Another triggerer takes everything over, polls it, and stores the findings. */
async function takenOver(): Promise<void> {
  const second = await rig.triggerer({ lease: LONG_LEASE });
  await rig.until(() => second.job.size === 1, "the schedule to be taken over");
  // Findings of the schedule come from the same poll, or an earlier one.
  const later = await rig.wait("tradewind.dagrun", null, { args: runOf("r1").args });
  await rig.outcome(later.attempt);
  await second.stop();
}

it("creates one run after all members have fired, also after a takeover", async () => {
  const first = await rig.triggerer({ lease: LONG_LEASE });
  await schedule({ run: runOf("r1"), bell: hook });
  await rig.notify("triggers");
  await rig.until(() => first.job.size === 1, "the schedule to be looked at");
  await ring("one");
  await ring("two");
  await otherRun("r1", "success");
  await rig.notify("ended");
  await rig.until(async () => (await events()).length > 0, "the run");
  await first.stop();
  await takenOver();
  const run = { dagId: "other", runId: "r1", logicalDate: null, state: "success" };
  expect(await events()).toEqual([{ run, bell: { body: "one", headers: {} } }]);
});

it("does not fire with the call of a webhook alone", async () => {
  const first = await rig.triggerer({ lease: LONG_LEASE });
  await schedule({ run: runOf("r1"), bell: hook });
  await rig.notify("triggers");
  await rig.until(() => first.job.size === 1, "the schedule to be looked at");
  await ring("one");
  await otherRun("r2", "success");
  // Found by the same poll as the call.
  const other = await rig.wait("tradewind.dagrun", null, { args: runOf("r2").args });
  await rig.outcome(other.attempt);
  await first.stop();
  expect(await events()).toEqual([]);
});

/** Creates a file when its event is acknowledged; the event is stored by then. */
const MARKS = `yield process.pid; (await import("node:fs")).writeFileSync(args.folder + "/" + process.pid, "");`;

it("recognizes the last event of built-in triggers, and of triggers that yield a key", async () => {
  const folder = join(rig.root, "marks");
  await mkdir(folder);
  await writeFile(join(rig.root, "file"), "");
  const bundle = await rig.bundle("demo.keyed", MARKS, (code) => code.replace("key: null", 'key: "k"'));
  await otherRun("r1", "success");
  await schedule(
    {
      run: runOf("r1"),
      file: call("tradewind.file", { path: join(rig.root, "file"), intervalMs: 100 }),
      pause: call("tradewind.timedelta", {}, { wake: { afterMs: 10 }, timed: { payload: null } }),
      keyed: call("demo.keyed", { folder }, { source: "bundle" }),
    },
    bundle,
  );
  for (const marks of [1, 2]) {
    const triggerer = await rig.triggerer({ lease: LONG_LEASE });
    await rig.until(async () => (await readdir(folder)).length === marks, "its event to be acknowledged");
    await triggerer.stop();
    expect(await events()).toHaveLength(1);
  }
  // Another file: another event.
  await writeFile(join(rig.root, "file"), "changed");
  const third = await rig.triggerer({ lease: LONG_LEASE });
  await rig.until(async () => (await readdir(folder)).length === 3, "its event to be acknowledged");
  await third.stop();
  expect(await events()).toHaveLength(2);
});
