/** Tasks whose DAG requires packages of its project and files next to it, with real schedulers and task processes. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";

let rig: SchedulerRig;
beforeEach(async () => {
  rig = await SchedulerRig.open();
  return () => rig.close();
});

const DAG = `
  import { dag } from "tradewind";
  import { version } from "addon";
  export default dag("a", (d) => { d.task("t", () => [version(), process.pid]); });`;

async function install(version: string): Promise<void> {
  const folder = join(rig.root, "dags/node_modules/addon");
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "index.js"), `exports.version = () => "${version}";`);
  await writeFile(
    join(folder, "package.json"),
    `{ "name": "addon", "version": "${version}", "gypfile": true }`,
  );
}

it("rejects another version of a package before the task's code starts, and accepts it with the next DAG version", async () => {
  await install("1.0.0");
  await rig.publish({ "a.ts": DAG });
  await rig.scheduler({ parallelism: 1, settings: { TRADEWIND_DAGS: join(rig.root, "dags") } });
  const first = await rig.trigger("a");
  expect(await rig.ended(first)).toBe("success");
  const [version, pid] = (await rig.output(first, "t")) as [string, number];
  expect(version).toBe("1.0.0");

  await install("1.0.1");
  const second = await rig.trigger("a");
  expect(await rig.ended(second)).toBe("failed");
  const { reason } = (await rig.tasks(second))["t"] ?? {};
  expect(reason).toContain(
    `requires package "addon" 1.0.0, and ${join(rig.root, "dags/node_modules/addon")} has 1.0.1`,
  );
  expect(reason).toContain(`cd ${join(rig.root, "dags")} && npm install addon@1.0.0`);

  await rig.publish({});
  const third = await rig.trigger("a");
  expect(await rig.ended(third)).toBe("success");
  const [newer, other] = (await rig.output(third, "t")) as [string, number];
  expect(newer).toBe("1.0.1");
  expect(other).not.toBe(pid);
});

it("provides a task with the files next to its DAG, and with a hint for a file that the bundle does not have", async () => {
  await rig.publish({
    "q.sql": "SELECT 1",
    "a.ts": `
      import { readFile } from "node:fs/promises";
      import { join } from "node:path";
      import { dag } from "tradewind";
      const read = (name: string) => readFile(join(import.meta.dirname, name), "utf8");
      export default dag("a", (d) => {
        d.task("known", () => readFile(new URL("./q.sql", import.meta.url), "utf8"));
        d.task("unknown", () => read("a.ts"));
      });`,
  });
  await rig.scheduler();
  const run = await rig.trigger("a");
  expect(await rig.ended(run)).toBe("failed");
  expect(await rig.output(run, "known")).toBe("SELECT 1");
  const { reason } = (await rig.tasks(run))["unknown"] ?? {};
  expect(reason).toContain("ENOENT");
  expect(reason).toContain("The DAG's bundle does not contain this file.");
});

it("names the package, its version and the folders when a scheduler does not have it", async () => {
  await install("1.0.0");
  await rig.publish({ "a.ts": DAG });
  const elsewhere = join(rig.root, "another", "machine");
  await rig.scheduler({ settings: { TRADEWIND_DAGS: elsewhere } });
  const run = await rig.trigger("a");
  expect(await rig.ended(run)).toBe("failed");
  const { reason } = (await rig.tasks(run))["t"] ?? {};
  expect(reason).toContain(`Package "addon" 1.0.0, which this version of the DAG requires, is not installed`);
  expect(reason).toContain(`node_modules of ${elsewhere}, ${process.cwd()}`);
  expect(reason).toContain(`npm install addon@1.0.0`);
});
