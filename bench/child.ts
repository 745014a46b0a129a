/** Child processes of the benchmarks. Work that depends on a child fails when the child ends, with the output of the child. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

export interface Child {
  readonly process: ChildProcess;
  /** The result of the work; rejects if the child ends before the work does. */
  during<T>(work: Promise<T>): Promise<T>;
  /** Resolves when the child has ended; kills it after a while. */
  stop(): Promise<void>;
}

const CLI = fileURLToPath(new URL("../packages/cli/src/main.ts", import.meta.url));
const STOP_MS = 20_000;
/** Enough for an error with its stack. */
const MAX_OUTPUT = 4_000;

/** A command of Tradewind as a user starts it. */
export function startTradewind(args: readonly string[], env: NodeJS.ProcessEnv): Child {
  const { HOME, PATH } = process.env;
  const child = spawn(process.execPath, ["--conditions=source", CLI, ...args], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { PATH, HOME, ...env },
  });
  return watchChild(`tradewind ${args[0]}`, child);
}

/** `end` asks the child to end; SIGTERM if omitted. The child's stderr must be a pipe. */
export function watchChild(
  what: string,
  child: ChildProcess,
  end: () => void = () => child.kill("SIGTERM"),
): Child {
  let output = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    output = (output + text).slice(-MAX_OUTPUT);
  });
  const ended = once(child, "exit");
  const closed = once(child, "close");
  const failed = ended.then(async ([code, signal]): Promise<never> => {
    // The last of its output. A process that it leaves behind may keep the pipe open.
    await Promise.race([closed, sleep(1_000)]);
    throw new Error(`${what} has ended with ${signal ?? `exit code ${code}`}:\n${output.trim()}`);
  });
  // Not an error while no work depends on the child.
  failed.catch(() => {});
  return {
    process: child,
    during: (work) => Promise.race([work, failed]),
    async stop() {
      end();
      const late = setTimeout(() => {
        process.stderr.write(`killing ${what}: it has not ended ${STOP_MS / 1_000} s after its stop\n`);
        child.kill("SIGKILL");
      }, STOP_MS);
      await ended;
      clearTimeout(late);
    },
  };
}

/** Also prints the child's stderr, for warnings of a child that does not fail. */
export function showOutput({ process: { stderr } }: Child): void {
  stderr?.on("data", (text: string) => process.stderr.write(text));
}
