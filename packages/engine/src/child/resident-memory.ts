/** The resident memory of a process and its descendants, as reported by the operating system. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";

const PAGE_BYTES = 4096;
const run = promisify(execFile);

/** Bytes of resident memory of the process group's leader and its descendants; 0 if it is gone. */
export async function residentBytes(pid: number): Promise<number> {
  return process.platform === "linux" ? await fromProc(pid, 0) : await fromPs(pid);
}

async function fromProc(pid: number, depth: number): Promise<number> {
  const statm = await read(`/proc/${pid}/statm`);
  let bytes = Number(statm.split(" ")[1] ?? 0) * PAGE_BYTES;
  // The depth is bounded because a pid may be reused between the two reads.
  if (depth > 16) return bytes;
  const children = await read(`/proc/${pid}/task/${pid}/children`);
  for (const child of children.split(" "))
    if (child !== "") bytes += await fromProc(Number(child), depth + 1);
  return bytes;
}

async function fromPs(pid: number): Promise<number> {
  const { stdout } = await run("ps", ["-A", "-o", "pgid=,rss="]).catch(() => ({ stdout: "" }));
  let bytes = 0;
  for (const line of stdout.split("\n")) {
    const [group, kilobytes] = line.trim().split(/\s+/);
    if (Number(group) === pid) bytes += Number(kilobytes) * 1024;
  }
  return bytes;
}

async function read(path: string): Promise<string> {
  return await readFile(path, "utf8").catch(() => "");
}
