/**
 * The last protection against orphans: a process that outlives a killed engine just long enough to end its task processes.
 *
 * It reads the list of live process groups from its stdin (`+pid` and `-pid`, one per line). Only the engine holds the
 * write end of that pipe; when the engine dies for any reason, the kernel closes it, and every group still on the list
 * gets SIGKILL. A task in a busy loop cannot notice that its engine is gone: this process can.
 *
 * `=ms` is the end of the engine's lease, by the system's monotonic clock: after it other jobs may start the same
 * attempts, so the groups are killed although the engine exists. It may be stopped, or in an endless loop.
 */
const groups = new Set<number>();
let endsAtMs = Number.POSITIVE_INFINITY;
let timer: NodeJS.Timeout | NodeJS.Immediate | undefined;
let rest = "";

process.stdin.setEncoding("utf8");
process.stdin.on("data", (chunk: string) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) {
    const value = Number(line.slice(1));
    if (line.startsWith("=")) {
      endsAtMs = value;
      continue;
    }
    if (!Number.isInteger(value) || value <= 1) continue;
    if (line.startsWith("+")) groups.add(value);
    else groups.delete(value);
  }
  if (timer === undefined) enforceLease();
});
process.stdin.on("close", () => {
  killGroups();
  process.exit(0);
});

function enforceLease(): void {
  timer = undefined;
  if (endsAtMs === Number.POSITIVE_INFINITY) return;
  const leftMs = endsAtMs - now();
  // Apparently expired: pending messages of the engine are read first.
  timer = leftMs > 0 ? setTimeout(enforceLease, leftMs) : setImmediate(expire);
}

function expire(): void {
  if (endsAtMs > now()) {
    enforceLease();
    return;
  }
  timer = undefined;
  endsAtMs = Number.POSITIVE_INFINITY;
  killGroups();
}

function now(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

function killGroups(): void {
  for (const pid of groups) {
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // Gone already.
    }
  }
}
// A terminal's Ctrl-C or a service manager's stop is for the engine; the guardian ends after the engine.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
