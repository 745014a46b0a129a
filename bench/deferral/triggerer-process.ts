/** `tradewind triggerer` as a user starts it, in a separate process with its trigger runner, on the rig's database. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { adhoc } from "../../packages/engine/src/store/database/database.ts";
import { descendants, type Resident } from "../process-tree.ts";
import type { Rig } from "../rig.ts";
import { until } from "./until.ts";

export interface TriggererProcess {
  readonly pid: number;
  /** The child that runs the triggers of bundles and of the outside world. */
  runner(): Resident | undefined;
  /** All of its processes, itself first. */
  processes(): Resident[];
  stop(): Promise<void>;
}

const CLI = fileURLToPath(new URL("../../packages/cli/src/main.ts", import.meta.url));
const RUNNER = /trigger[/-]runner/;
/** Its facts are stored once its runner exists; turns follow. */
const READY = adhoc(
  "SELECT 1 FROM job WHERE kind = 'triggerer' AND pid = $1 AND state = 'running' AND facts IS NOT NULL",
);

export async function startTriggerer(rig: Rig): Promise<TriggererProcess> {
  const { PATH, HOME, NODE_OPTIONS, TRADEWIND_LOG_LEVEL = "warn" } = process.env;
  const child = spawn(
    process.execPath,
    ["--conditions=source", CLI, "triggerer", "--home", rig.home, "--quiet"],
    {
      stdio: ["ignore", "ignore", "inherit"],
      env: {
        PATH,
        HOME,
        ...(NODE_OPTIONS ? { NODE_OPTIONS } : {}),
        TRADEWIND_LOG_LEVEL,
        DATABASE_URL: rig.database.url,
      },
    },
  );
  const ended = once(child, "exit");
  const pid = child.pid ?? 0;
  await until("the triggerer runs", async () => (await rig.database.one(READY, [pid])) !== undefined);
  const processes = () => descendants(pid);
  return {
    pid,
    processes,
    runner: () => processes().find(({ command }) => RUNNER.test(command)),
    async stop() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}
