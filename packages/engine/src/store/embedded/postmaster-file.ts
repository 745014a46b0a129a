import { spawnSync } from "node:child_process";
import { readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isRunning } from "../../service/process-identity.ts";

/** PostgreSQL's own note of the server that runs on a data folder: `postmaster.pid`. It outlives a killed server. */
export interface Postmaster {
  readonly pid: number;
  readonly port: number;
  readonly status: "starting" | "stopping" | "ready" | "standby" | "";
}

export function readPostmaster(data: string): Postmaster | undefined {
  let lines: string[];
  try {
    lines = readFileSync(join(data, "postmaster.pid"), "latin1").split("\n");
  } catch {
    return undefined;
  }
  return {
    pid: Number(lines[0]),
    port: Number(lines[3] ?? ""),
    status: (lines[7] ?? "").trim() as Postmaster["status"],
  };
}

/** Is this process a PostgreSQL server working on this data folder? Its number may have gone to another program. */
export function servesFolder(pid: number, data: string): boolean {
  if (!isRunning(pid)) return false;
  if (process.platform !== "linux") return looksLikePostgres(pid);
  try {
    // A server changes into its data folder before it writes its note.
    return readlinkSync(`/proc/${pid}/cwd`) === data;
  } catch {
    return false;
  }
}

/**
 * PostgreSQL believes that a server still runs when any process of the same user has the noted number. Deleting the
 * note would also delete the key by which it finds orphaned backends that still write to the data, so only the number
 * is replaced, by one that is surely dead.
 */
export function markDead(data: string, seen: Postmaster): void {
  const file = join(data, "postmaster.pid");
  const dead = spawnSync(process.execPath, ["--version"]).pid;
  const text = readFileSync(file, "latin1");
  if (Number(text.split("\n")[0]) !== seen.pid) return;
  writeFileSync(file, text.replace(/^\d+/, `${dead}`), "latin1");
}

function looksLikePostgres(pid: number): boolean {
  if (process.platform === "win32") return true;
  return /postgres/.test(spawnSync("ps", ["-o", "comm=", "-p", `${pid}`], { encoding: "utf8" }).stdout);
}
