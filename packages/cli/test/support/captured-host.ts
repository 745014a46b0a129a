import { Readable } from "node:stream";
import { run } from "../../src/run.ts";
import type { Host } from "../../src/session.ts";

export interface Captured {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command line in this process, without this machine's environment. */
export async function runCaptured(
  argv: readonly string[],
  options: {
    env?: NodeJS.ProcessEnv;
    columns?: number;
    /** Empty by default. */
    stdin?: Host["stdin"];
    /** Sends this signal as soon as the command listens for it. */
    signal?: "SIGTERM";
  } = {},
): Promise<Captured> {
  const written = { stdout: "", stderr: "" };
  const sink = (name: "stdout" | "stderr") => ({
    write: (text: string) => {
      written[name] += text;
    },
    ...(options.columns === undefined ? {} : { isTTY: true, columns: options.columns }),
  });
  const host: Host = {
    stdout: sink("stdout"),
    stderr: sink("stderr"),
    stdin: options.stdin ?? Readable.from([]),
    env: { TRADEWIND_HOME: "/nonexistent/tradewind-home", ...options.env },
    onSignal: (_, listener) => {
      const { signal } = options;
      if (signal !== undefined) setImmediate(() => listener(signal));
      return () => {};
    },
    exit: (code) => {
      throw new Error(`exit ${code}`);
    },
  };
  const code = await run(argv, host);
  return { code, ...written };
}
