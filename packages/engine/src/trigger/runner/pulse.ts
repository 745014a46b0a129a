/** The main thread's part of the watch: a beat that anybody can see, also when nobody can be asked. */
import childProcess from "node:child_process";
import { syncBuiltinESMExports } from "node:module";
import { Worker } from "node:worker_threads";
import { currentScope } from "./scope.ts";

/** Memory shared with the watchdog. */
export interface Pulse {
  /** When the event loop last turned, by process.hrtime.bigint(): the one clock that all threads share. */
  readonly beatAt: BigInt64Array;
  /** The serial of the trigger that waits for a subprocess without turning the loop; 0 for none. */
  readonly waiter: Int32Array;
}

export const BEAT_MS = 50;

export function startWatchdog(): void {
  const pulse: Pulse = {
    beatAt: new BigInt64Array(new SharedArrayBuffer(8)),
    waiter: new Int32Array(new SharedArrayBuffer(4)),
  };
  const beat = () => Atomics.store(pulse.beatAt, 0, process.hrtime.bigint());
  beat();
  setInterval(beat, BEAT_MS);
  // The program itself, wherever it was put: it knows by its thread which part it has (main.ts).
  const worker = new Worker(process.argv[1] as string, { workerData: pulse, env: {}, execArgv: [] });
  worker.unref();
  // Without it the supervisor still hears when pings stay unanswered: it only cannot know why.
  worker.on("error", (error) => console.error("the watchdog of triggers has ended:", error));
  noteWaiters(pulse);
}

/**
 * The one common way to stop a loop that the debugger cannot look into: the thread is then outside of JavaScript until
 * the subprocess ends, which may be never.
 */
function noteWaiters({ waiter }: Pulse): void {
  for (const name of ["execSync", "execFileSync", "spawnSync"] as const) {
    const original = childProcess[name] as (...args: unknown[]) => unknown;
    const noted = (...args: unknown[]): unknown => {
      const who = currentScope()?.who;
      if (typeof who === "number") Atomics.store(waiter, 0, who);
      try {
        return original(...args);
      } finally {
        Atomics.store(waiter, 0, 0);
      }
    };
    Object.assign(childProcess, { [name]: noted });
  }
  syncBuiltinESMExports();
}
