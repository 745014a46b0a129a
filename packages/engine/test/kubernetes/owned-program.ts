import { spawn } from "node:child_process";
import { once } from "node:events";
import { open, readFile } from "node:fs/promises";

/** A running program that is killed when this process ends, also by kill -9. */
export interface OwnedProgram {
  readonly isRunning: boolean;
  /** The last lines of its log. */
  lastLines(): Promise<string>;
  kill(): Promise<void>;
}

/** A shell between the two waits for the end of its standard input, which only this process holds open. */
const KILL_AT_END_OF_INPUT =
  'exec 3<&0; "$@" 3<&- </dev/null & program=$!; { read -r _ <&3; kill -KILL $program; } 2>/dev/null & wait $program';

/** @param log This file receives its output. */
export async function ownedProgram(
  path: string,
  args: readonly string[],
  log: string,
): Promise<OwnedProgram> {
  const output = await open(log, "a");
  const shell = spawn("sh", ["-c", KILL_AT_END_OF_INPUT, "sh", path, ...args], {
    stdio: ["pipe", output.fd, output.fd],
    // A signal to this process group, such as Ctrl-C in a terminal, must not end the shell before it has killed the program.
    detached: true,
  });
  await output.close();
  shell.stdin?.on("error", () => {});
  const isRunning = () => shell.exitCode === null && shell.signalCode === null;
  return {
    get isRunning() {
      return isRunning();
    },
    lastLines: async () => (await readFile(log, "utf8")).trimEnd().split("\n").slice(-10).join("\n"),
    kill: async () => {
      if (!isRunning()) return;
      shell.stdin?.destroy();
      await once(shell, "exit");
    },
  };
}
