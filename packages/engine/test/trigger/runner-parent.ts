/** A process that runs a trigger in a busy loop, for tests that kill it. Prints the pid of its child process. */
import { silentLogger } from "../../src/service/logger.ts";
import { TriggerRunner } from "../../src/trigger/process/trigger-runner.ts";

const [bundlePath = "", kind = ""] = process.argv.slice(2);
const runner = new TriggerRunner({
  services: { variable: async () => undefined, connection: async () => undefined },
  logger: silentLogger,
  blockLimitMs: 600_000,
  silenceMs: 600_000,
});
await runner.start({
  outcome: () => {},
  log: () => {},
  polled: () => {},
  ceased: () => {},
  members: () => {},
  blocked: () => {},
  ignoredAbort: () => {},
});
runner.run([{ id: 1, kind, args: {}, bundlePath }]);
process.stdout.write(`${runner.pid}\n`);
