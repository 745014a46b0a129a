/**
 * The installed packages: built, packed and unpacked as by npm, away from the sources, with only the dependencies that
 * each declares. No network: those are linked from this repository.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { blocksOf, ROOT } from "../docs/guide.ts";

const run = promisify(execFile);
const PACKAGES = ["sdk", "engine", "testing", "cli"] as const;
const MODULES = join(ROOT, "node_modules");

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

let folder: string;
let app: string;
/** The project's own programs first, as in an npm script. */
let env: NodeJS.ProcessEnv;

const manifestOf = (name: string) =>
  JSON.parse(readFileSync(join(ROOT, "packages", name, "package.json"), "utf8")) as Manifest;
const manifests = PACKAGES.map(manifestOf);
const tradewind = (...args: string[]) =>
  run(process.execPath, [join(app, "node_modules/tradewind/bin/tradewind.mjs"), ...args], { cwd: app, env });

beforeAll(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "tradewind-packed-")));
  app = join(folder, "app");
  env = {
    PATH: [join(MODULES, ".bin"), process.env.PATH].join(delimiter),
    HOME: process.env.HOME,
    TMPDIR: process.env.TMPDIR,
    npm_config_offline: "true",
    npm_config_update_notifier: "false",
  };
  const tarballs = await pack(join(folder, "sources"));
  await install(tarballs);
}, 120_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** In a copy: a `dist` in the sources would be run in their place by other processes. */
async function pack(sources: string): Promise<string[]> {
  for (const path of [
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "scripts/build.ts",
    "scripts/build-web.ts",
    "packages/web",
    ...PACKAGES.map((name) => `packages/${name}`),
  ]) {
    cpSync(join(ROOT, path), join(sources, path), {
      recursive: true,
      filter: (from) => !/[\\/](?:dist|test|node_modules)$/.test(from),
    });
  }
  for (const name of readdirSync(MODULES)) {
    if (name !== "tradewind" && name !== "@tradewind")
      link(join(MODULES, name), join(sources, "node_modules", name));
  }
  for (const [at, { name }] of manifests.entries())
    link(join(sources, "packages", PACKAGES[at]!), join(sources, "node_modules", name));
  await run(process.execPath, ["scripts/build.ts"], { cwd: sources, env }).catch(
    (error: { stdout: string }) => {
      throw new Error(`the build failed:\n${error.stdout}`);
    },
  );
  const { stdout } = await run("npm", ["pack", "--json", ...PACKAGES.map((name) => `./packages/${name}`)], {
    cwd: sources,
    env,
  });
  return (JSON.parse(stdout) as { filename: string }[]).map(({ filename }) => join(sources, filename));
}

async function install(tarballs: readonly string[]): Promise<void> {
  for (const [at, { name, dependencies, optionalDependencies }] of manifests.entries()) {
    const target = join(app, "node_modules", name);
    mkdirSync(target, { recursive: true });
    await run("tar", ["-xzf", tarballs[at]!, "-C", target, "--strip-components=1"]);
    for (const needed of Object.keys({ ...dependencies, ...optionalDependencies })) {
      const known = join(MODULES, needed);
      const place = join(app, "node_modules", needed);
      if (!manifests.some((own) => own.name === needed) && existsSync(known) && !existsSync(place))
        link(known, place);
    }
  }
  link(join(MODULES, "@types"), join(app, "node_modules/@types"));
  mkdirSync(join(app, "dags"));
  cpSync(join(ROOT, "examples/hello.ts"), join(app, "dags/hello.ts"));
  writeFileSync(join(app, "package.json"), JSON.stringify({ private: true, type: "module" }));
}

function link(to: string, from: string): void {
  mkdirSync(dirname(from), { recursive: true });
  symlinkSync(realpathSync(to), from);
}

describe("an installed tradewind", () => {
  it("has code, declarations, migrations and the web UI, and neither sources nor tests", async () => {
    const files = (name: string) =>
      readdirSync(join(app, "node_modules", name), { recursive: true, encoding: "utf8" }).filter(
        (file) => !file.startsWith("node_modules"),
      );
    expect(files("@tradewind/engine")).toEqual(
      expect.arrayContaining([
        "dist/index.js",
        "dist/index.d.ts",
        "dist/store/migrations/0001_schema.sql",
        "dist/web/index.html",
      ]),
    );
    const all = manifests.flatMap(({ name }) => files(name));
    expect(all.filter((file) => /\.test\.|(?<!\.d)\.ts$|^src\b/.test(file))).toEqual([]);
  });

  it("prints its version", async () => {
    expect((await tradewind("--version")).stdout.trim()).toBe(manifestOf("cli").version);
  });

  it("bundles and runs a DAG without a server", async () => {
    const { stderr } = await tradewind("dags", "test", "dags/hello.ts");
    expect(stderr).toContain('"Hello, world!"');
    expect(stderr).toMatch(/hello: success in .*, 3 tasks/);
  });

  it("has types for the project that the guide describes", async () => {
    const [settings] = blocksOf("docs/guides/projects.md").filter(({ title }) => title === "tsconfig.json");
    writeFileSync(join(app, "tsconfig.json"), settings?.text ?? "");
    expect((await run("tsc", ["-p", app], { env })).stdout).toBe("");
    const hello = readFileSync(join(app, "dags/hello.ts"), "utf8");
    writeFileSync(
      join(app, "dags/text.ts"),
      `${hello}\nimport sql from "./a.sql";\nexport const text: string = sql;\n`,
    );
    expect((await run("tsc", ["-p", app], { env })).stdout).toBe("");
    rmSync(join(app, "dags/text.ts"));
    writeFileSync(join(app, "dags/wrong.ts"), hello.replace("text.toUpperCase()", "text.toFixed()"));
    const wrong = await run("tsc", ["-p", app], { env }).catch((error: { stdout: string }) => error);
    rmSync(join(app, "dags/wrong.ts"));
    expect(wrong.stdout).toMatch(/dags\/wrong\.ts.*'toFixed' does not exist on type 'string'/);
  });

  it("has an entry for drivers, with its types", async () => {
    const driver = `import { DagRunJob, type RunProgress } from "tradewind/engine";
      export const progress: RunProgress = (await DagRunJob.open({ maxActive: 8 })).progress();\n`;
    writeFileSync(join(app, "dags/driver.ts"), driver);
    expect((await run("tsc", ["-p", app], { env })).stdout).toBe("");
    rmSync(join(app, "dags/driver.ts"));
    writeFileSync(join(app, "driver.mjs"), 'await (await import("tradewind/engine")).DagRunJob.open();');
    const { stderr } = await run(process.execPath, ["driver.mjs"], { cwd: app, env }).catch(
      (error: { stderr: string }) => error,
    );
    expect(stderr).toContain("DAG_RUN_JOB_NO_DATABASE");
  });

  it("runs standalone, with its own database, scheduler and task processes", async () => {
    const bin = join(app, "node_modules/tradewind/bin/tradewind.mjs");
    const child = spawn(process.execPath, [bin, "standalone", "--port", "0", "--parallelism", "2"], {
      cwd: app,
      env,
      stdio: ["ignore", "ignore", "pipe"],
    });
    let said = "";
    const ended = once(child, "exit") as Promise<[number | null]>;
    try {
      await new Promise<void>((resolve, reject) => {
        child.stderr.setEncoding("utf8").on("data", (text: string) => {
          said += text;
          if (/✓ hello .*success/.test(said)) resolve();
        });
        child.once("exit", () => reject(new Error(`it ended:\n${said}`)));
      });
    } finally {
      child.kill("SIGTERM");
      await ended;
    }
    expect((await ended)[0]).toBe(0);
  });
});
