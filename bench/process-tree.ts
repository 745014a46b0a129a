/**
 * CPU time of the processes of a system, by kind, read from /proc (Linux only; elsewhere everything is 0). The numbers do
 * not depend on other work on the machine, so they are meaningful on a shared machine.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface CpuTimes {
  /** The scheduler's own process (for a whole installation, its main process). */
  readonly main: number;
  /** Its descendants: task processes, guardian, bundlers. */
  readonly children: number;
  readonly postgres: number;
}

/** Milliseconds per clock tick: USER_HZ is 100 on every Linux that Node runs on. */
const TICK_MS = 10;

export class ProcessTree {
  readonly #main: number;
  readonly #dataDir: string;

  constructor(main: number, dataDir: string) {
    this.#main = main;
    this.#dataDir = dataDir;
  }

  /** CPU milliseconds used so far, including ended children. */
  cpu(): CpuTimes {
    const all = readStats();
    const postmaster = postmasterPid(this.#dataDir);
    const own = all.get(this.#main);
    // PostgreSQL has its own session, but may be a child of this process: count it once.
    const children = below(all, this.#main, postmaster);
    return {
      main: own?.own ?? 0,
      children: (own?.reaped ?? 0) + sum(children, (stat) => stat.own + stat.reaped),
      postgres: sum(below(all, postmaster, 0), (stat) => stat.own) + (all.get(postmaster)?.total ?? 0),
    };
  }

  /** Process ids, for a report. */
  count(): number {
    const all = readStats();
    const postmaster = postmasterPid(this.#dataDir);
    return 2 + below(all, this.#main, postmaster).length + below(all, postmaster, 0).length;
  }
}

export function cpuBetween(before: CpuTimes, after: CpuTimes): CpuTimes {
  return {
    main: after.main - before.main,
    children: after.children - before.children,
    postgres: after.postgres - before.postgres,
  };
}

export function cpuSum(times: CpuTimes): number {
  return times.main + times.children + times.postgres;
}

export interface Resident {
  readonly pid: number;
  readonly command: string;
  /** Resident memory, including shared pages. */
  readonly megabytes: number;
}

/** A process and its descendants, itself first. */
export function descendants(pid: number): Resident[] {
  const all = readStats();
  const own = all.get(pid);
  return [...(own ? [own] : []), ...below(all, pid, 0)].flatMap((stat) => {
    try {
      const command = readFileSync(`/proc/${stat.pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      const status = readFileSync(`/proc/${stat.pid}/status`, "latin1");
      return [{ pid: stat.pid, command, megabytes: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024 }];
    } catch {
      return []; // Gone meanwhile.
    }
  });
}

/** CPU milliseconds of this process alone, so far. */
export function cpuOf(pid: number): number {
  return readStat(String(pid))?.own ?? 0;
}

interface Stat {
  readonly pid: number;
  readonly parent: number;
  readonly own: number;
  /** Of ended and reaped children. */
  readonly reaped: number;
  readonly total: number;
}

function readStats(): Map<number, Stat> {
  const stats = new Map<number, Stat>();
  for (const name of directories()) {
    const stat = readStat(name);
    if (stat) stats.set(stat.pid, stat);
  }
  return stats;
}

function directories(): string[] {
  try {
    return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
}

function readStat(pid: string): Stat | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The command's name may contain anything; the fields begin after its closing bracket.
    const fields = text
      .slice(text.lastIndexOf(")") + 2)
      .split(" ")
      .map(Number);
    const [own, reaped] = [(fields[11] ?? 0) + (fields[12] ?? 0), (fields[13] ?? 0) + (fields[14] ?? 0)];
    return {
      pid: Number(pid),
      parent: fields[1] ?? 0,
      own: own * TICK_MS,
      reaped: reaped * TICK_MS,
      total: (own + reaped) * TICK_MS,
    };
  } catch {
    return null; // Gone meanwhile.
  }
}

function below(all: ReadonlyMap<number, Stat>, root: number, except: number): Stat[] {
  const found = [...all.values()].filter(({ parent, pid }) => parent === root && pid !== except && pid > 0);
  return root === 0 ? [] : found.flatMap((stat) => [stat, ...below(all, stat.pid, except)]);
}

function postmasterPid(dataDir: string): number {
  try {
    return Number(readFileSync(join(dataDir, "postmaster.pid"), "utf8").split("\n")[0]);
  } catch {
    return 0;
  }
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
