/** The main thread's part of the watchdog: a heartbeat in shared memory, readable while the thread is blocked. */
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
  /** Number of the engine's own module loads in progress. */
  readonly loads: Int32Array;
}

export const BEAT_MS = 50;

export function startWatchdog(): void {
  const pulse: Pulse = {
    beatAt: new BigInt64Array(new SharedArrayBuffer(8)),
    waiter: new Int32Array(new SharedArrayBuffer(4)),
    loads: new Int32Array(new SharedArrayBuffer(4)),
  };
  current = pulse;
  beat(pulse);
  setInterval(() => beat(pulse), BEAT_MS);
  // The program itself, at its actual path: main.ts chooses the role by thread.
  const worker = new Worker(process.argv[1] as string, { workerData: pulse, env: {}, execArgv: [] });
  worker.unref();
  // Without the watchdog the supervisor still notices unanswered pings, but cannot name the cause.
  worker.on("error", (error) => console.error("the watchdog of triggers has ended:", error));
  watchWaiters(pulse);
  watchFirstFetch();
}

function beat({ beatAt }: Pulse): void {
  Atomics.store(beatAt, 0, process.hrtime.bigint());
}

let current: Pulse | null = null;

/**
 * Begins to load a shared module, and returns the function to call when it is loaded. The time that Node and the drivers
 * of built-in triggers need for that, on a busy machine, is not charged to the trigger that came first.
 */
export function beginLoad(): () => void {
  const pulse = current;
  if (pulse === null) return () => {};
  Atomics.add(pulse.loads, 0, 1);
  return () => {
    // First: the time so far must not count.
    beat(pulse);
    Atomics.sub(pulse.loads, 0, 1);
  };
}

/** Node loads its HTTP client at the first use of one of these, inside the code of the trigger that uses it. */
function watchFirstFetch(): void {
  for (const name of ["fetch", "Headers", "Request", "Response"] as const) {
    const original = Object.getOwnPropertyDescriptor(globalThis, name);
    if (original === undefined) continue;
    const first = <T>(use: () => T): T => {
      Object.defineProperty(globalThis, name, original);
      const end = beginLoad();
      try {
        return use();
      } finally {
        end();
      }
    };
    const noted: PropertyDescriptor =
      name === "fetch"
        ? { ...original, value: (...args: Parameters<typeof fetch>) => first(() => fetch(...args)) }
        : {
            ...{ configurable: true, enumerable: false },
            get: () => first(() => globalThis[name]),
            set: (value) =>
              Object.defineProperty(globalThis, name, { configurable: true, writable: true, value }),
          };
    Object.defineProperty(globalThis, name, noted);
  }
}

/**
 * The one common way to block the loop that the debugger cannot inspect: the thread is outside of JavaScript until the
 * subprocess ends, possibly forever.
 */
function watchWaiters({ waiter }: Pulse): void {
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
