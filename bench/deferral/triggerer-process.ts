/** `tradewind triggerer` as a user starts it, in a separate process with its trigger runner, on the rig's database. */
import { adhoc } from "../../packages/engine/src/store/database/database.ts";
import { type Child, showOutput, startTradewind } from "../child.ts";
import { descendants, type Resident } from "../process-tree.ts";
import type { Rig } from "../rig.ts";
import { until } from "../until.ts";

export interface TriggererProcess {
  /** The child that runs the triggers of bundles and of the outside world. */
  runner(): Resident | undefined;
  /** All of its processes, itself first. */
  processes(): Resident[];
}

const RUNNER = /trigger[/-]runner/;
/** Its facts are stored once its runner exists; turns follow. */
const READY = adhoc(
  "SELECT 1 FROM job WHERE kind = 'triggerer' AND pid = $1 AND state = 'running' AND facts IS NOT NULL",
);

/** Starts a triggerer for some work, which fails if the triggerer ends. */
export async function withTriggerer<T>(
  rig: Rig,
  work: (triggerer: TriggererProcess) => Promise<T>,
): Promise<T> {
  const { NODE_OPTIONS, TRADEWIND_LOG_LEVEL = "warn" } = process.env;
  const child = startTradewind(["triggerer", "--home", rig.home, "--quiet"], {
    ...(NODE_OPTIONS ? { NODE_OPTIONS } : {}),
    TRADEWIND_LOG_LEVEL,
    DATABASE_URL: rig.database.url,
  });
  showOutput(child);
  try {
    return await child.during(started(rig, child).then(work));
  } finally {
    await child.stop();
  }
}

async function started(rig: Rig, child: Child): Promise<TriggererProcess> {
  const pid = child.process.pid ?? 0;
  await until("the triggerer runs", async () => (await rig.database.one(READY, [pid])) !== undefined);
  const processes = () => descendants(pid);
  return { processes, runner: () => processes().find(({ command }) => RUNNER.test(command)) };
}
