/** The programs of docs/guides/drivers.md, in separate processes against a real database. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { adhoc } from "../../packages/engine/src/store/database/database.ts";
import { SchedulerRig } from "../../packages/engine/test/support/scheduler-rig.ts";
import { blocksOf, ROOT } from "./guide.ts";

const blocks = new Map(blocksOf("docs/guides/drivers.md").map(({ text, title }) => [title, text]));
const DAG = blocks.get("dags/rebuild.ts")!;
let folder: string;
let rig: SchedulerRig;

beforeAll(async () => {
  // Inside the repository, where packages resolve.
  await mkdir(join(ROOT, ".cache/drivers"), { recursive: true });
  folder = await mkdtemp(join(ROOT, ".cache/drivers/"));
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  for (const name of ["hundred_days", "day_by_day"])
    await writeFile(join(folder, `${name}.ts`), blocks.get(`drivers/${name}.ts`)!);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

beforeEach(async () => {
  rig = await SchedulerRig.open();
  return () => rig.close();
});

function start(name: string): { child: ChildProcess; said: () => string; ended: Promise<number | null> } {
  const child = spawn(process.execPath, ["--conditions=source", join(folder, `${name}.ts`)], {
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: rig.url,
      TRADEWIND_HOME: join(rig.root, "driver"),
      TRADEWIND_PARALLELISM: "4",
      TRADEWIND_LOG_LEVEL: "error",
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  for (const stream of [child.stdout!, child.stderr!])
    stream.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
    });
  const ended = once(child, "close").then(([code]) => code as number | null);
  return { child, said: () => text, ended };
}

const states = async () => {
  const sql = "SELECT state, count(*)::int AS n FROM dag_run GROUP BY state";
  const rows = await rig.db.rows<{ state: string; n: number }>(adhoc(sql));
  return Object.fromEntries(rows.map(({ state, n }) => [state, n]));
};

/** The DAG of the guide, whose second task runs this code first. */
const built = (code: string) => {
  const changed = DAG.replace(
    /\(\{ day \}\) => (`[^`]+`)/,
    (_, value) => `async ({ day }) => { ${code} return ${value}; }`,
  );
  expect(changed).not.toBe(DAG);
  return changed;
};

it("runs 100 dates and prints the progress", async () => {
  await rig.publish({ "rebuild.ts": DAG });
  const { ended, said } = start("hundred_days");
  expect([await ended, said()]).toEqual([0, expect.stringContaining("(100 of 100, 100 %)")]);
  expect(await states()).toEqual({ success: 100 });
  const [first] = await rig.db.rows<{ id: number }>(
    adhoc("SELECT id FROM dag_run ORDER BY logical_date LIMIT 1"),
  );
  expect(await rig.output(first!.id, "build")).toBe("partition 2026-01-01");
});

it("stops at the first failure: runs that have not started are never created", async () => {
  const fails = built('if (day === "2026-01-10") throw new Error("no data");');
  await rig.publish({ "rebuild.ts": fails.replace("retries: 1", "retries: 0") });
  const { ended, said } = start("hundred_days");
  expect([await ended, said()]).toEqual([1, expect.stringContaining("stopping: ")]);
  const { failed, queued, running, success } = await states();
  expect({ failed, queued, running }).toEqual({ failed: 1, queued: undefined, running: undefined });
  expect(success).toBeLessThan(40);
});

it("submits the next day when one has succeeded", async () => {
  await rig.publish({ "rebuild.ts": DAG });
  const { ended, said } = start("day_by_day");
  expect([await ended, said()]).toEqual([0, ""]);
  expect(await states()).toEqual({ success: 30 });
});

it("leaves its started runs to a scheduler when killed, and completes the rest after a restart", async () => {
  const gate = join(rig.root, "gate");
  const held = built(
    `while (!(await import("node:fs")).existsSync(${JSON.stringify(gate)})) await new Promise((go) => setTimeout(go, 20));`,
  );
  await rig.publish({ "rebuild.ts": held });
  const first = start("hundred_days");
  await rig.until(async () => (await states()).running === 8, "eight runs");
  first.child.kill("SIGKILL");
  await first.ended;
  expect(await states()).toEqual({ running: 8 });
  await rig.scheduler({ shared: false });
  await writeFile(gate, "");
  await rig.until(async () => (await states()).success === 8, "the end of the runs that it left");
  const again = start("hundred_days");
  expect([await again.ended, again.said()]).toEqual([0, expect.stringContaining("(100 of 100, 100 %)")]);
  expect(await states()).toEqual({ success: 100 });
  const tries = await rig.db.one(
    adhoc("SELECT max(try_number) AS most, count(*)::int AS n FROM task_instance"),
  );
  expect(tries).toEqual({ most: 1, n: 200 });
});
