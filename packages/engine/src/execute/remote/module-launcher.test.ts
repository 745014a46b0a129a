import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Logger, silentLogger } from "../../service/logger.ts";
import type { LauncherHost } from "./launcher.ts";
import { ModuleLauncher } from "./module-launcher.ts";

let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tradewind-module-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const REQUEST = { id: "a1", queue: "default", priority: 1, config: null };

async function launcher(name: string, source: string, options = {}): Promise<ModuleLauncher> {
  const module = join(folder, name);
  await writeFile(module, source);
  return new ModuleLauncher({ name: "acme", module, options });
}

function host(errors: unknown[] = []): LauncherHost {
  const logger: Logger = { ...silentLogger, error: (message, fields) => errors.push([message, fields]) };
  return {
    executor: "acme",
    logger,
    installation: async () => "one",
    describe: async () => new Map(),
    existing: async () => new Set(),
    unclaimed: async () => [],
    launchToken: (id) => `token of ${id}`,
    lost: async () => {},
    failed: async () => {},
  };
}

it("creates the class of the module with its options, and passes launches on", async () => {
  const acme = await launcher(
    "acme.mjs",
    `export default class {
       constructor(options) { this.options = options; }
       async start(host) { this.host = host; }
       launch(requests) { this.said = [this.options.zone, ...requests.map(({ id }) => this.host.launchToken(id))].join(); }
       withdraw(ids) { this.said += " without " + ids; }
       problem() { return this.said ?? null; }
       async stop() { this.said = "stopped"; }
     }`,
    { zone: "eu" },
  );
  await acme.start(host());
  expect(acme.problem()).toBeNull();
  acme.launch([REQUEST]);
  acme.withdraw(["a1"]);
  expect(acme.problem()).toBe("eu,token of a1 without a1");
  await acme.stop();
  expect(acme.problem()).toBe("stopped");
});

it.each([
  ["no-class.mjs", "export default {};", /its default export is not a class/],
  ["no-launch.mjs", "export default class { async start() {} async stop() {} }", /its class lacks launch\./],
  [
    "picky.mjs",
    `export default class { constructor() { throw new Error("zone is missing"); } }`,
    /its class rejects the options: zone is missing/,
  ],
  [
    "offline.mjs",
    `export default class { async start() { throw new Error("no route"); } launch() {} async stop() {} }`,
    /its executor does not start: no route/,
  ],
  ["broken.mjs", "export default class {", /it cannot be loaded/],
])("rejects the module %s, naming executor, module and reason", async (name, source, why) => {
  const start = (await launcher(name, source)).start(host());
  await expect(start).rejects.toMatchObject({ code: "EXECUTOR_MODULE" });
  await expect(start).rejects.toThrow(why);
  await expect(start).rejects.toThrow(
    `Executor "acme" of TRADEWIND_EXECUTORS: the module ${join(folder, name)}`,
  );
});

it("rejects a package that is not installed", async () => {
  const missing = new ModuleLauncher({ name: "acme", module: "@acme/not-there", options: {} });
  await expect(missing.start(host())).rejects.toThrow(/@acme\/not-there.* it cannot be loaded/);
});

it("finds a package from the folder where the scheduler runs", async () => {
  // A dependency of this project without an executor: it is found and loaded, then rejected.
  const found = new ModuleLauncher({ name: "acme", module: "pg", options: {} });
  await expect(found.start(host())).rejects.toThrow(
    /the module pg provides no executor: its default export is not a class/,
  );
});

it("logs what a method of the module throws or rejects", async () => {
  const errors: unknown[] = [];
  const acme = await launcher(
    "faulty.mjs",
    `export default class {
       async start() {}
       async launch() { throw new Error("late"); }
       withdraw() { throw new Error("at once"); }
       problem() { throw new Error("unsure"); }
       async stop() { throw new Error("stuck"); }
     }`,
  );
  await acme.start(host(errors));
  acme.launch([REQUEST]);
  acme.withdraw(["a1"]);
  expect(acme.problem()).toBe('its method "problem" failed: unsure');
  await acme.stop();
  const failed = (method: string, error: string) => [
    `"${method}" of the executor's module failed`,
    { error },
  ];
  expect(errors).toEqual(
    expect.arrayContaining([
      failed("launch", "late"),
      failed("withdraw", "at once"),
      failed("stop", "stuck"),
    ]),
  );
});
