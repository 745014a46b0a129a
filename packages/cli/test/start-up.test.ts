/** `tradewind standalone` that cannot start, or is stopped during its start. */
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { runCli, StandaloneProcess, spawnCli } from "./support/standalone-process.ts";

let folder: string;
let home: string;
let dags: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tradewind-start-"));
  home = join(folder, "home");
  dags = join(folder, "dags");
  await mkdir(dags);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const start = (...options: string[]) => runCli(["standalone", ...options], {});

it.runIf(process.platform === "linux")("reports a home that cannot be created", async () => {
  const { code, stderr } = await start("--home", "/proc/tradewind", "--dags", dags, "--port", "0");
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^Starting Tradewind…\nerror: The home folder \/proc\/tradewind cannot be used: .* \[HOME_UNUSABLE\]\n$/,
  );
});

it("reports a missing DAG folder in one line and creates nothing", async () => {
  const { code, stderr } = await start("--home", home, "--dags", join(folder, "none"), "--port", "0");
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^Starting Tradewind…\nerror: The DAG folder .*none cannot be read .* \[DAG_FOLDER_UNREADABLE\]\n$/,
  );
  expect(existsSync(home)).toBe(false);
});

it("reports a port in use in one line before creating a database", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  try {
    const { code, stderr } = await start("--home", home, "--dags", dags, "--port", String(port));
    expect(code).toBe(5);
    expect(stderr).toMatch(
      /^Starting Tradewind…\nerror: The API cannot listen on 127\.0\.0\.1:\d+: .* \[API_ADDRESS\]\n$/,
    );
    expect(existsSync(join(home, "postgres"))).toBe(false);
  } finally {
    other.close();
  }
});

it("stops after one signal during the start and leaves no server behind", async () => {
  const fresh = join(folder, "fresh");
  const args = ["standalone", "--home", fresh, "--dags", dags, "--port", "0"];
  const { code, stderr } = await runCli(args, {}, (child) => {
    const watch = setInterval(() => {
      if (!existsSync(join(fresh, "standalone.lock"))) return;
      clearInterval(watch);
      child.kill("SIGINT");
    }, 5);
  });
  expect(stderr).toMatch(/Stopping \(SIGINT\)[\s\S]*Stopped\.\n$/);
  expect(stderr).not.toContain("Tradewind is running");
  expect(code).toBe(0);
  expect(existsSync(join(fresh, "postgres", "data", "postmaster.pid"))).toBe(false);
});

it("starts without a DAG folder, shows how to write the first DAG, and reports its failed run", async () => {
  const empty = join(folder, "empty");
  await mkdir(empty);
  const child = spawnCli(["standalone", "--port", "0"], {}, empty);
  const standalone = new StandaloneProcess(empty, child);
  onTestFinished(() => standalone.remove());
  await standalone.until(/Starting the database…\n/);
  await standalone.until(
    /There is no DAG in .*\/empty\/dags yet\..* save this as .*\/empty\/dags\/hello\.ts:/,
  );
  const [, code] = /hello\.ts:\n\n([\s\S]*?\n {4}\}\);\n)/.exec(standalone.stderr) ?? [];
  await writeFile(
    join(empty, "dags", "hello.ts"),
    code?.replace('"Hello, world!"', 'Promise.reject(Error("no"))') ?? "",
  );
  await standalone.until(/^ {2}1 DAG loaded: hello$/m);
  await standalone.until(/^✗ hello .* failed in .*\n {4}greet, try 1: Error: no$/m);
});
