/**
 * Finds triggers that ignore `abort`. Such a trigger keeps using memory, connections and the event loop although no task
 * waits for it. It is reported once per class and delays nothing here.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { RunningTrigger, TriggerHost, TriggerProgram } from "@tradewind/sdk/program";

export interface IgnoredAbort {
  readonly kind: string;
  readonly args: Json;
  /** Time since the abort. */
  readonly ms: number;
}

/** How long code may take to end after its abort. */
const END_MS = 2_000;

const reported = new WeakSet<TriggerProgram>();

/** Wraps the program: calls `report` if its code is still running some time after its abort. */
export function watchAborts(
  program: TriggerProgram,
  report: (ignored: IgnoredAbort) => void,
): TriggerProgram {
  return {
    protocol: program.protocol,
    id: program.id,
    start: async (args, host) => {
      const running = await program.start(args, host);
      return reported.has(program)
        ? running
        : watched(running, host.abort, (ms) => {
            if (reported.has(program)) return;
            reported.add(program);
            report({ kind: program.id, args, ms });
          });
    },
  };
}

function watched(
  running: RunningTrigger,
  abort: TriggerHost["abort"],
  ignored: (ms: number) => void,
): RunningTrigger {
  let underWay = 0;
  const onAbort = (): void => {
    if (underWay === 0) return;
    const abortedAt = performance.now();
    const look = (): void => {
      if (underWay > 0) ignored(Math.round(performance.now() - abortedAt));
    };
    setTimeout(look, END_MS).unref();
  };
  if (!abort.aborted) abort.addEventListener("abort", onAbort, { once: true });
  return {
    next: async () => {
      underWay++;
      try {
        return await running.next();
      } finally {
        underWay--;
      }
    },
    cleanup: () => running.cleanup(),
  };
}
