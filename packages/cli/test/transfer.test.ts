/** `import` and `export` of settings, and `connections test`, against a real standalone. */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, stat, writeFile } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { runCaptured } from "./support/captured-host.ts";
import { StandaloneProcess } from "./support/standalone-process.ts";

let standalone: StandaloneProcess;
let folder: string;
const tw = (...argv: string[]) => runCaptured(argv, { env: { TRADEWIND_HOME: standalone.home } });
const json = async <T>(...argv: string[]): Promise<T> =>
  JSON.parse((await tw(...argv, "--json")).stdout) as T;

async function fileOf(content: unknown): Promise<string> {
  const file = join(folder, "import.json");
  await writeFile(file, JSON.stringify(content));
  return file;
}

async function serverUrl(): Promise<string> {
  const text = await readFile(join(standalone.home, "standalone.json"), "utf8");
  return (JSON.parse(text) as { url: string }).url;
}

/** Returns the port of a server that is closed after the test. */
async function listen(handler: RequestListener): Promise<number> {
  const server = createServer(handler).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

async function deleteAll(group: string, key: string): Promise<void> {
  for (const each of await json<Record<string, string>[]>(group, "list"))
    if (each[key] !== "default_pool") await tw(group, "delete", each[key] as string, "--yes");
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "tradewind-transfer-"));
  standalone = await StandaloneProcess.startWith(["hello.ts"], []);
}, 120_000);
afterAll(() => standalone?.remove());
beforeEach(async () => {
  await deleteAll("variables", "key");
  await deleteAll("connections", "connection_id");
  await deleteAll("pools", "name");
});

const WAREHOUSE = {
  conn_type: "postgres",
  description: "the warehouse",
  host: "db.example",
  login: "ann",
  password: "s3cret-word",
  port: 5432,
  schema: "sales",
  extra: '{"sslmode":"require"}',
};

describe("import", () => {
  it("imports files of Airflow, with a preview", async () => {
    const airflow = await fileOf({
      warehouse: WAREHOUSE,
      plain: { conn_type: "http", host: "a.example", login: null, password: null, extra: { timeout: 3 } },
      cloud: "google-cloud-platform://?__extra__=%7B%22project%22%3A+%22p1%22%7D",
    });
    const dry = await tw("connections", "import", airflow, "--dry-run");
    expect(dry.stdout).toMatch(/^NAME +WOULD BE +FIELDS\n.*\nplain +created +conn_type, host, extra\n/);
    expect(dry.stderr).toContain("Would import 3 connections: 3 created, 0 changed, 0 unchanged.");
    expect(await json("connections", "list")).toEqual([]);
    expect((await tw("connections", "import", airflow)).stderr).toContain(
      "Imported 3 connections: 3 created",
    );
    expect(await json("connections", "show", "cloud")).toMatchObject({ conn_type: "google_cloud_platform" });

    const variables = await fileOf({
      limit: 10,
      nested: { a: [1, 2] },
      region: "eu",
      told: { value: { x: 1 }, description: "with words" },
    });
    expect((await tw("variables", "import", variables)).code).toBe(0);
    expect((await tw("variables", "show", "nested", "--value")).stdout).toBe('{"a":[1,2]}\n');
    expect(await json("variables", "show", "told")).toMatchObject({
      value: '{"x":1}',
      description: "with words",
    });
    const pools = await fileOf({ gpu: { slots: 2, description: "cards", include_deferred: false } });
    expect((await tw("pools", "import", pools)).code).toBe(0);
    expect(await json("pools", "show", "gpu")).toMatchObject({ slots: 2, description: "cards" });
  });

  it("changes nothing if an entry is invalid, and names all invalid entries", async () => {
    const file = await fileOf({
      good: { conn_type: "http" },
      list: [1],
      "bad id": { conn_type: "http" },
      far: { conn_type: "http", port: 99_999, colour: "red" },
      uri: "not a uri with s3cret",
    });
    for (const more of [[], ["--dry-run"]]) {
      const { code, stderr } = await tw("connections", "import", file, ...more);
      expect(code).toBe(2);
      expect(stderr).toMatch(/cannot import .*Nothing was changed\. \[TW_CLI_SETTINGS\]/);
      expect(stderr).toContain("list: it must be an object or a URI.");
      expect(stderr).toContain("uri: the URI is not a connection URI.");
      expect(stderr).toContain("bad id.connection_id: May contain letters");
      expect(stderr).toContain("far.port: ");
      expect(stderr).toContain('far.colour: Unknown field "colour"');
      expect(stderr).not.toContain("s3cret");
    }
    expect(await json("connections", "list")).toEqual([]);
    const hidden = await tw("variables", "import", await fileOf({ api_token: "***" }));
    expect([hidden.code, hidden.stderr]).toEqual([2, expect.stringContaining("--with-secrets")]);
  });

  it("reads stdin", () => {
    const main = fileURLToPath(new URL("../src/main.ts", import.meta.url));
    const words = ["--conditions=source", main, "--home", standalone.home, "variables", "import", "-"];
    const ran = spawnSync(process.execPath, words, { input: '{"piped": "yes"}', encoding: "utf8" });
    expect([ran.status, ran.stderr]).toEqual([0, expect.stringContaining("1 variable: 1 created")]);
  });
});

describe("export", () => {
  it("hides secrets, and keeps stored secrets on a re-import", async () => {
    await tw("connections", "import", await fileOf({ warehouse: WAREHOUSE }));
    await tw("variables", "import", await fileOf({ region: "eu", api_token: "s3cret-word" }));
    const shown = await tw("connections", "export");
    const { password: _, extra: __, ...open } = WAREHOUSE;
    expect(JSON.parse(shown.stdout)).toEqual({ warehouse: open });
    expect(shown.stderr).toContain("Passwords and extra are left out");
    const variables = await tw("variables", "export");
    expect(JSON.parse(variables.stdout)).toEqual({ region: "eu" });
    expect(variables.stderr).toContain("their values are secret: api_token.");

    const file = await fileOf(JSON.parse(shown.stdout));
    expect((await tw("connections", "import", file)).stderr).toContain("1 unchanged");
    const whole = await tw("connections", "export", "--with-secrets");
    expect(JSON.parse(whole.stdout)).toEqual({ warehouse: WAREHOUSE });
  });

  it("exports a file with secrets that restores everything", async () => {
    await tw("connections", "import", await fileOf({ warehouse: WAREHOUSE }));
    await tw(
      "variables",
      "import",
      await fileOf({ api_token: "t-1", told: { value: "", description: "d" } }),
    );
    await tw("pools", "set", "gpu", "2", "--include-deferred");
    for (const [group, key, more] of [
      ["connections", "connection_id", ["--with-secrets"]],
      ["variables", "key", ["--with-secrets"]],
      ["pools", "name", []],
    ] as const) {
      const file = join(folder, `${group}.json`);
      expect((await tw(group, "export", file, ...more)).stderr).toContain(`written to ${file}.`);
      expect((await stat(file)).mode & 0o777).toBe(0o600);
      const before = await readFile(file, "utf8");
      await deleteAll(group, key);
      expect((await tw(group, "import", file)).code).toBe(0);
      expect((await tw(group, "export", ...more)).stdout).toBe(before);
    }
  });

  it("needs the database and its key to export secrets", async () => {
    const url = await serverUrl();
    const env = {
      TRADEWIND_URL: url,
      TRADEWIND_TOKEN: (await readFile(join(standalone.home, "token"), "utf8")).trim(),
    };
    expect((await runCaptured(["variables", "export"], { env })).code).toBe(0);
    const { code, stderr } = await runCaptured(["variables", "export", "--with-secrets"], { env });
    expect([code, stderr]).toEqual([
      3,
      expect.stringMatching(/does not send secrets over the network\. \[TW_CLI_NO_DATABASE\]\n.*--home/),
    ]);
  });
});

describe("connections test", () => {
  it("reports the test performed, and fails with a code", { timeout: 60_000 }, async () => {
    const port = await listen((_, response) => response.end("hello"));
    await tw("connections", "set", "site", "--type", "http", "--host", "127.0.0.1", "--port", `${port}`);
    const said = await tw("connections", "test", "site");
    expect([said.code, said.stderr]).toEqual([
      0,
      expect.stringMatching(
        /^Connection site: 127\.0\.0\.1:\d+ is reachable; credentials not tested \(GET .* 200\)\.$/m,
      ),
    ]);
    expect(await json("connections", "test", "site")).toMatchObject({
      tested: "reachability",
      connection_id: "site",
    });
    await tw(
      "connections",
      "set",
      "site",
      "--type",
      "postgres",
      "--login",
      "ann",
      "--password",
      "s3cret-word",
    );
    const failed = await tw("connections", "test", "site", "--timeout", "30s");
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringMatching(/\[CONNECTION_UNREACHABLE\]/)]);
    expect(failed.stderr).not.toContain("s3cret");
    const missing = await tw("connections", "test", "nothing");
    expect([missing.code, missing.stderr]).toEqual([3, expect.stringContaining("connections list")]);
  });
});
