/**
 * Chooses the account that runs user code. A process with the engine's own account can read the admin token, the secret
 * key and the engine's memory, so only another account prevents a task from taking over the installation. Changing the
 * account needs root: started as root, Tradewind does so by default.
 *
 * The account must be able to read what its processes load. Where it cannot (a project in root's home), the default
 * account is given up with a warning; a configured account is never replaced by a more powerful one.
 */
import { spawn } from "node:child_process";
import { chmod, chown, constants, readFile, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { childEntries } from "../../child/child-entry.ts";
import type { Config } from "../../service/config.ts";
import { EngineError } from "../../service/errors.ts";
import type { Home } from "../../service/home.ts";
import type { Logger } from "../../service/logger.ts";
import { type ProcessUser, USER_CODE_UID } from "../../service/process-user.ts";

export interface AccountChoice {
  readonly config: Pick<Config, "taskUser">;
  readonly home: Home;
  readonly logger: Logger;
  /** The DAG folder, for a process that imports from it. */
  readonly dags?: string;
}

/** Null: user code runs as the account of this process. Opens the home's bundles to the returned account. */
export async function chooseUserCodeAccount(choice: AccountChoice): Promise<ProcessUser | null> {
  const { config, home, logger } = choice;
  const own = process.getuid?.();
  const asked = config.taskUser === undefined ? undefined : await findUser(config.taskUser);
  if (own !== 0) {
    if (asked === undefined || asked.uid === own) return null;
    throw unusable(config, "only root can run processes as another account");
  }
  if (asked?.uid === 0) {
    logger.warn(
      "started as root, and user code runs as root: start Tradewind as an ordinary account, or a task can do anything on this machine",
    );
    return null;
  }
  const user = asked ?? { uid: USER_CODE_UID, gid: USER_CODE_UID, home: "/nonexistent" };
  const obstacle = await findObstacle(user, choice);
  if (obstacle === null) {
    await openBundles(home, user);
    logger.warn("started as root: an ordinary account is safer", { user_code_runs_as: `uid ${user.uid}` });
    return user;
  }
  if (asked !== undefined) throw unusable(config, obstacle);
  logger.warn(
    `started as root: start Tradewind as an ordinary account, or move the project where uid ${user.uid} can read it. User code runs as root, because ${obstacle}: a task can do anything on this machine`,
  );
  return null;
}

function unusable({ taskUser }: Pick<Config, "taskUser">, why: string): EngineError {
  return new EngineError(
    "TASK_USER_UNUSABLE",
    `TRADEWIND_TASK_USER is ${taskUser}, but tasks cannot run as that user: ${why}.`,
  );
}

/** A number, with or without a group, or a name of /etc/passwd. */
async function findUser(text: string): Promise<ProcessUser> {
  const lines = (await readFile("/etc/passwd", "utf8").catch(() => "")).split("\n");
  const [, uid, gid] = /^(\d+)(?::(\d+))?$/.exec(text) ?? [];
  const entry = lines
    .map((line) => line.split(":"))
    .find((fields) => (uid === undefined ? fields[0] === text : fields[2] === uid));
  if (uid === undefined && entry === undefined) {
    throw new EngineError(
      "TASK_USER_UNUSABLE",
      `TRADEWIND_TASK_USER is ${text}, but /etc/passwd has no such user. Create it, or give a number, such as ${USER_CODE_UID}.`,
    );
  }
  return {
    uid: Number(uid ?? entry?.[2]),
    gid: Number(gid ?? entry?.[3] ?? uid),
    home: entry?.[5] || "/nonexistent",
  };
}

/** Why the account cannot run user code here; null if it can. */
async function findObstacle(user: ProcessUser, { home, dags }: AccountChoice): Promise<string | null> {
  const { R_OK, X_OK } = constants;
  const programs = Object.values(await childEntries());
  const needed = [
    ...programs.map((path) => ({ path, access: R_OK })),
    ...[process.cwd(), dirname(home.path)].map((path) => ({ path, access: X_OK })),
    ...(dags === undefined ? [] : [{ path: dags, access: R_OK | X_OK }]),
  ];
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ["-e", PROBE, JSON.stringify(needed)], {
      uid: user.uid,
      gid: user.gid,
      cwd: "/",
      env: {},
      stdio: ["ignore", "pipe", "ignore"],
    });
    let output = "";
    child.stdout.on("data", (data: Buffer) => {
      output += data;
    });
    child.once("error", (error) => {
      resolve(`uid ${user.uid} cannot run ${process.execPath} (${error.message})`);
    });
    child.once("close", (code) => {
      if (code === 0) resolve(null);
      else resolve(`uid ${user.uid} cannot ${output === "" ? `run ${process.execPath}` : `read ${output}`}`);
    });
  });
}

const PROBE = `
const { accessSync } = require("node:fs");
for (const { path, access } of JSON.parse(process.argv[1])) {
  try { accessSync(path, access) } catch { process.stdout.write(path); process.exitCode = 1; break }
}`;

/** Its group may traverse the home, which stays closed to all others, and read the bundles; nothing else in it. */
async function openBundles(home: Home, user: ProcessUser): Promise<void> {
  for (const [path, bits] of [
    [home.path, 0o010],
    [home.bundles, 0o050],
  ] as const) {
    const { uid, mode } = await stat(path);
    await chown(path, uid, user.gid);
    await chmod(path, (mode & 0o707) | bits);
  }
}
