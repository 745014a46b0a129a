import { spawnSync } from "node:child_process";
import { readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isRunning } from "../../service/process-identity.ts";

/** `postmaster.pid`: PostgreSQL's record of the server on a data folder. It remains after the server is killed. */
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

/** True if this process is a PostgreSQL server on this data folder. Its process id may have been reused. */
export function servesFolder(pid: number, data: string): boolean {
  if (!isRunning(pid)) return false;
  if (process.platform !== "linux") return looksLikePostgres(pid);
  try {
    // A server changes into its data folder before it writes the file.
    return readlinkSync(`/proc/${pid}/cwd`) === data;
  } catch {
    return false;
  }
}

/**
 * PostgreSQL assumes that a server still runs if any process of the same user has the recorded id. Deleting the file
 * would also delete the key by which PostgreSQL finds orphaned backends that still write to the data, so only the id is
 * replaced, by one that is certainly dead.
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
