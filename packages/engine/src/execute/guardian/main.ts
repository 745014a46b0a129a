/**
 * The last guard against orphans: a process that outlives a killed engine just long enough to end its task processes.
 *
 * It reads the list of live process groups from its stdin (`+pid` and `-pid`, one per line). The write end of that
 * pipe is held by the engine alone; when the engine dies, however it dies, the kernel closes it, and every group still
 * on the list gets SIGKILL. A task in a busy loop cannot see that its engine is gone: this process can.
 */
const groups = new Set<number>();
let rest = "";

process.stdin.setEncoding("utf8");
process.stdin.on("data", (chunk: string) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) {
    const pid = Number(line.slice(1));
    if (!Number.isInteger(pid) || pid <= 1) continue;
    if (line.startsWith("+")) groups.add(pid);
    else groups.delete(pid);
  }
});
process.stdin.on("close", () => {
  for (const pid of groups) {
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // Gone already.
    }
  }
  process.exit(0);
});
// A terminal's Ctrl-C or a service manager's stop is for the engine; the guardian goes when the engine has gone.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
