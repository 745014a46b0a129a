/** The `tradewind` command as a process: runs when it is imported. */
import { EXIT } from "./exit-code.ts";
import { run } from "./run.ts";
import type { Host } from "./session.ts";

const host: Host = {
  stdout: process.stdout,
  stderr: process.stderr,
  stdin: process.stdin,
  env: process.env,
  onSignal(signals, listener) {
    for (const signal of signals) process.on(signal, listener);
    return () => {
      for (const signal of signals) process.off(signal, listener);
    };
  },
  exit: (code) => process.exit(code),
};

// The reader of a pipe has closed it (`tradewind runs list | head`): exit silently.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(EXIT.ok);
  throw error;
});

const code = await run(process.argv.slice(2), host);
process.stdout.write("", () => process.exit(code));
