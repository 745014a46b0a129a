import type { LauncherHost } from "../../src/execute/remote/launcher.ts";
import { silentLogger } from "../../src/service/logger.ts";

/** The host of a launcher without an executor: no assignment is stored, unless the test gives some. */
export function launcherHost(given: Partial<LauncherHost> = {}): LauncherHost {
  return {
    executor: "queue",
    logger: silentLogger,
    installation: async () => "test",
    describe: async () => new Map(),
    existing: async () => new Set(),
    unclaimed: async () => [],
    launchToken: () => "",
    lost: async () => {},
    failed: async () => {},
    ...given,
  };
}
