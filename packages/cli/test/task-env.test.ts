/** The environment of user code, from the shell of a service to a task, across the restart of the service. */
import { mkdir, mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { StandaloneProcess } from "./support/standalone-process.ts";

it("passes on what TRADEWIND_TASK_ENV allows, and never the secrets of the service", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tradewind-task-env-"));
  await mkdir(join(folder, "dags"));
  const seen = join(folder, "seen.json");
  await writeFile(
    join(folder, "dags", "looks.ts"),
    `import { writeFileSync } from "node:fs";
import { dag, once } from "tradewind";

const atImport = process.env.SHOP_API_KEY ?? null;

export default dag("looks", { schedule: once(), env: { SHOP_MODE: "batch" } }, (d) => {
  d.task("look", () => writeFileSync(${JSON.stringify(seen)}, JSON.stringify({ atImport, ...process.env })));
});
`,
  );
  const standalone = await StandaloneProcess.startOn(folder, [], {
    TRADEWIND_TASK_ENV: "SHOP_*,*_URL,TRADEWIND_*",
    SHOP_API_KEY: "for tasks",
    REDIS_URL: "redis://secret",
    TRADEWIND_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
    HTTPS_PROXY: "http://proxy.example:3128",
    TRADEWIND_TASK_USER: process.getuid?.() === 0 ? "root" : undefined,
  });
  onTestFinished(() => standalone.remove());
  expect(standalone.stderr).toMatch(
    /WARN +a pattern of TRADEWIND_TASK_ENV matches variables that are never passed.*REDIS_URL.*TRADEWIND_SECRET_KEY/,
  );
  await standalone.until(/✓ looks /);
  const environment = JSON.parse(await readFile(seen, "utf8")) as Record<string, string>;
  expect(environment).toMatchObject({
    atImport: "for tasks",
    SHOP_API_KEY: "for tasks",
    SHOP_MODE: "batch",
    HTTPS_PROXY: "http://proxy.example:3128",
  });
  const kept = /^(?:TRADEWIND_.*|REDIS_URL|DATABASE_URL)$/;
  expect(Object.keys(environment).filter((name) => kept.test(name))).toEqual([]);
});
