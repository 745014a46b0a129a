/** The end of a process on this machine. A number that was given to another process meanwhile is an end, too. */
import { readFileSync } from "node:fs";
import { processIdentity } from "../service/process-identity.ts";
import { instant, members, orNull, whole } from "./argument-readers.ts";
import { polledKind } from "./poll-loop.ts";
import type { View } from "./sights.ts";

const INTERVAL_MS = 1_000;
/** Start times are kept to the second, and the moment of boot that they are counted from can be adjusted by one. */
const TOLERANCE_MS = 2_000;
/** What Linux counts start times in, on every platform that Node runs on. */
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
      look: async () => {
        const identity = processIdentity(pid);
        waitedFor ??= identity !== null && isThatOne(identity, startedAt) ? identity : null;
        if (identity !== null && identity === waitedFor) return { note: `process ${pid} is running` };
        return { event: { pid, endedAt: new Date().toISOString() } };
      },
    };
  },
});

/** Where the system does not tell, whoever has the number is the one. */
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
