import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { pgProxy } from "../../test/support/pg-proxy.ts";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database/database.ts";

const LEASE = { ttlMs: 3_000, renewMs: 700, marginMs: 1_000 };

/** Each task writes a line when it starts and every 20 ms until its end: attempt, task and time. */
const source = (dagId: string, root: string, body: string) => `
  import { appendFileSync, existsSync } from "node:fs";
  import { dag } from "tradewind";
  const work = async (_, ctx) => {
    for (let lived = 0; lived === 0 || !existsSync(${JSON.stringify(root)} + "/open"); lived++) {
      appendFileSync(${JSON.stringify(`${root}/${dagId}.ledger`)}, ctx.taskId + " " + ctx.attempt + " " + Date.now() + "\\n");
      await new Promise((go) => setTimeout(go, 20));
    }
  };
  export default dag(${JSON.stringify(dagId)}, {}, (d) => { ${body} });
`;

interface Life {
  readonly task: string;
  readonly attempt: string;
  readonly from: number;
  readonly to: number;
}

function lives(path: string): Life[] {
  const found = new Map<string, Life>();
  for (const line of readFileSync(path, "utf8").trim().split("\n")) {
    const [task = "", attempt = "", at] = line.split(" ");
    const former = found.get(attempt);
    found.set(attempt, { task, attempt, from: former?.from ?? Number(at), to: Number(at) });
  }
  return [...found.values()];
}

/** How long two attempts of one task were alive at the same time. */
function overlapMs(all: readonly Life[]): number {
  let most = 0;
  for (const one of all)
    for (const other of all)
      if (one.attempt !== other.attempt && one.task === other.task)
        most = Math.max(most, Math.min(one.to, other.to) - Math.max(one.from, other.from));
  return most;
}

it("drops waiting attempts and stops running ones before another scheduler takes over an expired lease", async () => {
  const rig = await SchedulerRig.open();
  const ledger = `${rig.root}/held.ledger`;
  writeFileSync(ledger, "");
  const proxy = await pgProxy(rig.url);
  onTestFinished(() => proxy.close());
  const settings = { DATABASE_URL: rig.url };
  // Two run, the others wait in the executor behind long tasks.
  const tasks = `for (let n = 0; n < 4; n++) d.task("t" + n, work);`;
  await rig.publish({ "held.ts": source("held", rig.root, tasks) });
  await rig.scheduler({ shared: false, url: proxy.url, settings, lease: LEASE, parallelism: 2 });
  const id = await rig.trigger("held");
  await rig.until(async () => lives(ledger).length === 2, "two tasks at work");
  proxy.set({ kind: "hang" });
  const hungAt = Date.now();
  const other = await rig.scheduler({ shared: false, settings, lease: LEASE, parallelism: 2 });
  await rig.until(
    async () => new Set(lives(ledger).map(({ attempt }) => attempt)).size >= 4,
    "the other scheduler to start them again",
  );
  const takenAt = Math.min(
    ...lives(ledger)
      .slice(2)
      .map(({ from }) => from),
  );
  expect(takenAt - hungAt).toBeGreaterThan(LEASE.ttlMs - LEASE.renewMs - 500);
  // Reconnected long after the end of its lease: none of its waiting attempts may start.
  const before = lives(ledger).length;
  proxy.set({ kind: "pass" });
  await sleep(2 * LEASE.renewMs);
  expect(lives(ledger)).toHaveLength(before);
  appendFileSync(`${rig.root}/open`, "");
  expect(await rig.ended(id)).toBe("success");
  expect(overlapMs(lives(ledger))).toBeLessThan(0.1);
  const rows = await rig.db.rows<{ n: number }>(
    adhoc("SELECT max(try_number)::int AS n FROM task_instance WHERE dag_run_id = $1"),
    [id],
  );
  expect(rows[0]?.n).toBe(1);
  await other.stop(0);
});

it("starts the next task within 10 s after its connections hang, and keeps running tasks", async () => {
  const rig = await SchedulerRig.open();
  const proxy = await pgProxy(rig.url);
  onTestFinished(() => proxy.close());
  writeFileSync(`${rig.root}/long.ledger`, "");
  await rig.publish({
    "long.ts": source("long", rig.root, `d.task("t", work);`),
    "next.ts": `import { dag } from "tradewind"; export default dag("next", {}, (d) => { d.task("only", () => 1); });`,
  });
  // With the default lease.
  await rig.scheduler({ shared: false, url: proxy.url, settings: { DATABASE_URL: rig.url } });
  const long = await rig.trigger("long");
  await rig.until(async () => (await rig.states(long)).t === "running", "a long task");
  proxy.set({ kind: "half-open" });
  expect(proxy.faults.silenced).toBeGreaterThan(2);
  expect(await rig.ended(await rig.trigger("next"), 10_000)).toBe("success");
  appendFileSync(`${rig.root}/open`, "");
  expect(await rig.ended(long)).toBe("success");
  expect(lives(`${rig.root}/long.ledger`)).toHaveLength(1);
});
