/** A new trigger is owned at once, with any number of triggerers and any state of their knowledge of each other. */
import { expect, it } from "vitest";
import { seedTriggerer } from "../../test/support/trigger-seed.ts";
import { LONG_LEASE, TriggererRig } from "../../test/support/triggerer-rig.ts";
import { adhoc } from "../store/database/database.ts";

const NEVER = "await new Promise((resolve) => host.abort.addEventListener('abort', resolve));";
const FACTS = { triggers: 0, capacity: 100, queues: ["default"], unclaimed: 0, lagMs: 0 };

/** Creates this many triggers; returns how long each waited for its owner, in milliseconds. */
async function owned(rig: TriggererRig, bundle: string, count: number): Promise<number[]> {
  const ids: number[] = [];
  for (let n = 0; n < count; n++) ids.push((await rig.wait("demo.wait", bundle)).triggerId);
  const sql = `SELECT extract(epoch FROM claimed_at - created_at)::float8 * 1000 AS ms FROM trigger
               WHERE id = ANY($1) AND owner_job IS NOT NULL ORDER BY 1`;
  let rows: readonly { ms: number }[] = [];
  await rig.until(async () => {
    rows = await rig.db.rows<{ ms: number }>(adhoc(sql), [ids]);
    return rows.length === count;
  }, "all to be owned");
  return rows.map(({ ms }) => ms);
}

function report(what: string, ms: readonly number[]): void {
  const [median, most] = [ms[Math.floor(ms.length / 2)] ?? 0, ms.at(-1) ?? 0];
  process.stdout.write(
    `${what}: owned after ${median.toFixed(0)} ms (median), ${most.toFixed(0)} ms (most)\n`,
  );
  // 200 ms on an idle machine; the next poll of a triggerer is minutes away.
  expect(most).toBeLessThan(5_000);
}

for (const count of [1, 2, 3]) {
  it(`${count} triggerers claim new triggers before they have read each other's last load`, async () => {
    const rig = await TriggererRig.open();
    const bundle = await rig.bundle("demo.wait", NEVER);
    for (let n = 0; n < count; n++) await rig.triggerer({ lease: LONG_LEASE });
    report(`${count} triggerers, first`, await owned(rig, bundle, 40));
    report(`${count} triggerers, then`, await owned(rig, bundle, 10));
  });
}

it("claims triggers beside a triggerer that has just died and one that is full", async () => {
  const rig = await TriggererRig.open();
  const bundle = await rig.bundle("demo.wait", NEVER);
  const dead = await seedTriggerer(rig.db);
  await rig.db.rows(adhoc("UPDATE job SET facts = $2 WHERE id = $1"), [dead, JSON.stringify(FACTS)]);
  const full = await rig.triggerer({ lease: LONG_LEASE, capacity: 5 });
  const other = await rig.triggerer({ lease: LONG_LEASE });
  report("beside a dead and a full one", await owned(rig, bundle, 40));
  await rig.until(() => full.job.size + other.job.size === 40, "all to be run");
  expect(full.job.size).toBeLessThanOrEqual(5);
});

it("claims a waiting trigger as soon as capacity is free", async () => {
  const rig = await TriggererRig.open();
  const bundle = await rig.bundle("demo.wait", NEVER);
  const { job } = await rig.triggerer({ lease: LONG_LEASE, capacity: 1 });
  const { attempt } = await rig.wait("demo.wait", bundle);
  await rig.until(() => job.size === 1, "the first to run");
  const next = await rig.wait("demo.wait", bundle);
  await rig.db.rows(
    adhoc("UPDATE deferral SET waits_on = NULL, ended_at = now(), end_kind = 'cancelled' WHERE attempt = $1"),
    [attempt],
  );
  await rig.notify("unwaited");
  const owner = () =>
    rig.db.one<{ owner_job: number | null }>(adhoc("SELECT owner_job FROM trigger WHERE id = $1"), [
      next.triggerId,
    ]);
  await rig.until(async () => (await owner())?.owner_job === job.jobId, "the second to be owned", 10_000);
});

it("evens out the load between triggerers, and then keeps it", async () => {
  const rig = await TriggererRig.open();
  const bundle = await rig.bundle("demo.wait", NEVER);
  const first = await rig.triggerer();
  const second = await rig.triggerer();
  await owned(rig, bundle, 40);
  // Only the triggers of the second end.
  await rig.db.rows(
    adhoc(`UPDATE deferral d SET waits_on = NULL, ended_at = now(), end_kind = 'cancelled'
           FROM trigger t WHERE t.id = d.waits_on AND t.owner_job = $1`),
    [second.job.jobId],
  );
  await rig.notify("unwaited");
  await rig.until(() => second.job.size === 0, "the second to have none");
  await owned(rig, bundle, 20);
  await rig.until(
    async () => Math.abs(first.job.size - second.job.size) <= 8 && !(await rig.owners()).includes(null),
    "an even share",
  );
  const before = await rig.owners();
  await rig.heartbeats(first.job.jobId, 7);
  expect(await rig.owners()).toEqual(before);
});
