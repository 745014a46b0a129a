import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/**
 * Identifies a process across reuse of its id, which may belong to another process by now.
 * Null if no such process runs (a zombie does not run).
 */
export function processIdentity(pid: number): string | null {
  if (!Number.isInteger(pid) || pid <= 0) return null;
  return process.platform === "linux" ? linuxIdentity(pid) : portableIdentity(pid);
}

export function isRunning(pid: number): boolean {
  return processIdentity(pid) !== null;
}

/** The same as a file name, beginning with the id. A name without a running process is never used again. */
export function processName(pid: number): string | null {
  const identity = processIdentity(pid);
  return identity === null
    ? null
    : `${pid}-${createHash("sha256").update(identity).digest("hex").slice(0, 16)}`;
}

function linuxIdentity(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The command name in parentheses may contain spaces and parentheses: fields are counted from the last ")".
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const state = fields[0];
    const startTicks = fields[19];
    if (state === "Z" || state === "X") return null;
    return `${bootId()}:${pid}:${startTicks}`;
  } catch {
    return null;
  }
}

function portableIdentity(pid: number): string | null {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EPERM") return null;
  }
  if (process.platform === "win32") return `${pid}`;
  try {
    const started = execFileSync("ps", ["-o", "stat=,lstart=", "-p", `${pid}`], { encoding: "utf8" }).trim();
    return started === "" || started.startsWith("Z") ? null : `${pid}:${started.replace(/^\S+\s+/, "")}`;
  } catch {
    return null;
  }
}

let boot: string | undefined;

/** Start times are counted from boot, so they repeat after a restart of the machine. */
function bootId(): string {
  if (boot === undefined) {
    try {
      boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    } catch {
      boot = "";
    }
  }
  return boot;
}
