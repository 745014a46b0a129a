/** Waits for the end of a process on this machine. A reuse of its id by another process is an end, too. */
import { readFileSync } from "node:fs";
import { processIdentity } from "../service/process-identity.ts";
import { instant, members, orNull, whole } from "./argument-readers.ts";
import { polledKind } from "./poll-loop.ts";
import type { View } from "./watches.ts";

const INTERVAL_MS = 1_000;
/** Start times have a resolution of one second, and the boot time they are relative to can be adjusted by one. */
const TOLERANCE_MS = 2_000;
/** The unit of start times on Linux, on every platform that Node supports. */
const TICKS_PER_SECOND = 100;

export const processKind = polledKind("tradewind.process", {
  args: members({ pid: whole(1), startedAt: orNull(instant) }),
  intervalMs: () => INTERVAL_MS,
  again: "never",
  open: async ({ pid, startedAt }): Promise<View> => {
    let waitedFor: string | null = null;
    return {
      place: "process",
      limit: 16,
      poll: async () => {
        const identity = processIdentity(pid);
        waitedFor ??= identity !== null && isThatOne(identity, startedAt) ? identity : null;
        if (identity !== null && identity === waitedFor) return { note: `process ${pid} is running` };
        return { event: { pid, endedAt: new Date().toISOString() } };
      },
    };
  },
});

/** Where the system does not report start times, the id alone decides. */
function isThatOne(identity: string, startedAt: string | null): boolean {
  const began = startedAt === null ? null : startOf(identity);
  return began === null || Math.abs(began - Date.parse(startedAt as string)) <= TOLERANCE_MS;
}

/** The wall-clock time in an identity, which ends in ticks since boot on Linux and in a date elsewhere. */
function startOf(identity: string): number | null {
  if (process.platform !== "linux") {
    const began = Date.parse(identity.slice(identity.indexOf(":") + 1));
    return Number.isNaN(began) ? null : began;
  }
  const ticks = Number(identity.slice(identity.lastIndexOf(":") + 1));
  const bootSeconds = Number(/^btime (\d+)$/m.exec(readFileSync("/proc/stat", "latin1"))?.[1]);
  return Number.isFinite(bootSeconds) ? bootSeconds * 1_000 + (ticks * 1_000) / TICKS_PER_SECOND : null;
}
