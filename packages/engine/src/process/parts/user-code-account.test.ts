/** User code under a separate account: its permissions, and the behaviour where the account cannot be used. */
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { hasOtherAccount } from "../../../test/support/other-account.ts";
import { type TestDatabase, testDatabase } from "../../../test/support/test-database.ts";
import { resolveConfig } from "../../service/config.ts";
import { type Home, openHome } from "../../service/home.ts";
import { type Logger, silentLogger } from "../../service/logger.ts";
import { USER_CODE_UID } from "../../service/process-user.ts";
import { type Standalone, startStandalone } from "../standalone.ts";
import { chooseUserCodeAccount } from "./user-code-account.ts";

const asRoot = process.getuid?.() === 0;

const DAGS = {
  "probe.ts": (marks: string, home: string) => `
import { dag, Timetable, Trigger } from "tradewind";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
const mark = (kind: string) => writeFileSync(${JSON.stringify(`${marks}/`)} + kind + "-" + process.getuid?.(), "");
mark("import");
class Own extends Trigger<void, number> {
  static id = "probe.own";
  async *run() { mark("trigger"); yield 7; }
}
class Never extends Timetable {
  static id = "probe.never";
  next() { mark("timetable"); return null; }
}
const reach = (path: string, use: (path: string) => unknown = readFileSync) => {
  try { use(path); return "reached"; } catch (error: any) { return error.code; }
};
export const timed = dag("timed", { schedule: new Never(undefined) }, (d) => { d.task("t", () => 1); });
export default dag("probe", {}, (d) => {
  d.task("probe", () => {
    mark("task");
    const home = ${JSON.stringify(home)};
    const bundle = import.meta.url.slice("file://".length);
    writeFileSync(${JSON.stringify(`${marks}/reached.json`)}, JSON.stringify({
      token: reach(home + "/token"),
      key: reach(home + "/secret.key"),
      list: reach(home, readdirSync),
      logs: reach(home + "/logs", readdirSync),
      environment: reach("/proc/" + process.ppid + "/environ"),
      memory: reach("/proc/" + process.ppid + "/mem"),
      signal: reach("", () => process.kill(process.ppid, 0)),
      ownCode: reach(bundle),
      changedCode: reach(bundle, (path) => writeFileSync(path, "")),
      home: process.env.HOME,
    }));
  });
  d.trigger("wait", new Own(undefined));
});
`,
};

describe.runIf(hasOtherAccount)("started as root", () => {
  let root: string;
  let marks: string;
  let home: Home;
  let db: TestDatabase;
  let standalone: Standalone;
  const api = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${standalone.token}`, "content-type": "application/json" };
    const answer = await fetch(`${standalone.url}/api/v2${path}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    });
    return (await answer.json()) as { state?: string };
  };

  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), "tw-user-"));
    await chmod(root, 0o755);
    marks = join(root, "marks");
    await mkdir(marks);
    await chmod(marks, 0o777);
    await mkdir(join(root, "dags"));
    db = await testDatabase();
    const env = { DATABASE_URL: db.url, TRADEWIND_LOG_LEVEL: "error" };
    const config = resolveConfig(
      { home: join(root, "home"), dags: join(root, "dags"), port: 0, parallelism: 2 },
      env,
    );
    home = await openHome(config.home);
    for (const [name, text] of Object.entries(DAGS))
      await writeFile(join(root, "dags", name), text(marks, home.path));
    standalone = await startStandalone(config);
  }, 60_000);
  afterAll(async () => {
    await standalone?.stop();
    await db?.close();
    await rm(root, { recursive: true, force: true });
  });

  it("runs tasks, triggers, timetables and DAG files as a user that cannot read the engine's secrets", async () => {
    await waitFor(
      async () => "dag_run_id" in (await api("POST", "/dags/probe/dagRuns", { dag_run_id: "one" })),
    );
    await waitFor(async () => (await api("GET", "/dags/probe/dagRuns/one")).state === "success");
    await waitFor(async () => (await readdir(marks)).some((name) => name.startsWith("timetable")));
    const kinds = (await readdir(marks)).filter((name) => name !== "reached.json").sort();
    expect(kinds).toEqual(
      ["import", "task", "timetable", "trigger"].map((kind) => `${kind}-${USER_CODE_UID}`),
    );
    expect(JSON.parse(await readFile(join(marks, "reached.json"), "utf8"))).toEqual({
      token: "EACCES",
      key: "EACCES",
      list: "EACCES",
      logs: "EACCES",
      environment: "EACCES",
      memory: "EACCES",
      signal: "EPERM",
      ownCode: "reached",
      changedCode: "EACCES",
      home: "/nonexistent",
    });
  });

  it("opens the home to that user's group only, and in it only the bundles", async () => {
    const shape = async (path: string) => {
      const { gid, mode } = await stat(path);
      return [gid, (mode & 0o777).toString(8)];
    };
    expect(await shape(home.path)).toEqual([USER_CODE_UID, "710"]);
    expect(await shape(home.bundles)).toEqual([USER_CODE_UID, "750"]);
    expect(await shape(home.logs)).toEqual([0, "700"]);
    expect(await shape(home.token)).toEqual([0, "600"]);
  });
});

describe.runIf(hasOtherAccount)("the choice of the account, as root", () => {
  let root: string;
  let home: Home;
  let lines: string[];
  const logger: Logger = { ...silentLogger, warn: (message) => lines.push(message) };
  const choose = (taskUser?: string) => chooseUserCodeAccount({ config: { taskUser }, home, logger });

  beforeEach(async () => {
    lines = [];
    root = await mkdtemp(join(tmpdir(), "tw-user-"));
    await chmod(root, 0o755);
    home = await openHome(join(root, "closed", "home"));
    return () => rm(root, { recursive: true });
  });

  it("falls back to root with a warning that names the folder, and leaves the home unchanged", async () => {
    expect(await choose()).toBeNull();
    expect(lines).toEqual([
      expect.stringContaining(`uid ${USER_CODE_UID} cannot read ${join(root, "closed")}`),
    ]);
    expect((await stat(home.path)).mode & 0o777).toBe(0o700);
  });

  it("does not start if a configured account cannot be used", async () => {
    await expect(choose("1234")).rejects.toMatchObject({ code: "TASK_USER_UNUSABLE" });
    await expect(choose("nosuchuser")).rejects.toThrow(/\/etc\/passwd has no such user/);
  });

  it("accepts a number, a number with a group, a name, and root", async () => {
    await chmod(join(root, "closed"), 0o711);
    expect(await choose()).toMatchObject({ uid: USER_CODE_UID, gid: USER_CODE_UID });
    expect(await choose("1234")).toMatchObject({ uid: 1234, gid: 1234 });
    expect(await choose("1234:99")).toMatchObject({ uid: 1234, gid: 99 });
    expect(await choose("nobody")).toMatchObject({ uid: 65_534 });
    expect(await choose("root")).toBeNull();
    expect(lines.filter((line) => line.startsWith("started as root"))).toHaveLength(5);
  });

  it("keeps the owner of a home that is not root's", async () => {
    await chmod(join(root, "closed"), 0o711);
    await chown(home.path, 4242, 4242);
    await choose("1234");
    expect(await stat(home.path)).toMatchObject({ uid: 4242, gid: 1234 });
  });
});

it.skipIf(asRoot)("uses only its own account as an ordinary user", async () => {
  const root = await mkdtemp(join(tmpdir(), "tw-user-"));
  const home = await openHome(join(root, "home"));
  const choose = (taskUser?: string) =>
    chooseUserCodeAccount({ config: { taskUser }, home, logger: silentLogger });
  expect(await choose()).toBeNull();
  expect(await choose(`${process.getuid?.()}`)).toBeNull();
  await expect(choose("60999")).rejects.toThrow(/only root can/);
  await rm(root, { recursive: true });
});

async function waitFor(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(50);
}
