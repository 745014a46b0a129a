/**
 * The cost of a whole installation while 30 of its tasks wait: `tradewind standalone` as a user starts it (scheduler, DAG
 * processor, API, PostgreSQL), all its processes together. The tasks wait for their next try.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startTradewind } from "../child.ts";
import { freePort } from "../free-port.ts";
import { cpuBetween, cpuSum, ProcessTree } from "../process-tree.ts";
import type { Figure } from "../result.ts";
import { waitingFile } from "../shapes.ts";
import { digits } from "../statistics.ts";

const TASKS = 30;
const SETTLED_MS = 100_000;

export async function idle(options: { readonly quick: boolean }): Promise<Figure[]> {
  const seconds = options.quick ? 5 : 60;
  const root = await mkdtemp(join(tmpdir(), "tradewind-bench-"));
  const [home, dags, port] = [join(root, "home"), join(root, "dags"), await freePort()];
  await mkdir(dags);
  await writeFile(join(dags, "waiting.ts"), waitingFile("waiting", TASKS));
  const args = ["standalone", "--home", home, "--dags", dags, "--port", String(port)];
  const system = startTradewind(args, { TRADEWIND_LOG_LEVEL: "error" });
  const startedAt = performance.now();
  try {
    await system.during(allWaiting(home, port));
    // Effects of the start (processes kept ready, the first vacuum, the terminal output of the first minute) are not
    // idle cost.
    await system.during(sleep(options.quick ? 2_000 : startedAt + SETTLED_MS - performance.now()));
    const tree = new ProcessTree(system.process.pid ?? 0, join(home, "postgres", "data"));
    const before = tree.cpu();
    await system.during(sleep(seconds * 1_000));
    const cpu = cpuBetween(before, tree.cpu());
    const percent = (ms: number) => (100 * ms) / (seconds * 1_000);
    return [
      {
        scenario: "h",
        what: `idle with ${TASKS} waiting tasks, CPU of all ${tree.count()} processes`,
        value: percent(cpuSum(cpu)),
        unit: "% of a core",
        bar: { atMost: 1 },
        note: `main process ${digits(percent(cpu.main))} %, its children ${digits(percent(cpu.children))} %, PostgreSQL ${digits(percent(cpu.postgres))} %; over ${seconds} s${options.quick ? " of its first minute" : ""}`,
      },
    ];
  } finally {
    await system.stop();
    await rm(root, { recursive: true, force: true });
  }
}

async function allWaiting(home: string, port: number): Promise<void> {
  const url = `http://127.0.0.1:${port}/api/v2/dags/~/dagRuns/~/taskInstances?state=up_for_retry&limit=1`;
  const deadline = performance.now() + 60_000;
  for (;;) {
    const waiting = await count(url, join(home, "token")).catch(() => 0);
    if (waiting === TASKS) return;
    if (performance.now() > deadline) throw new Error(`idle: only ${waiting} of ${TASKS} tasks are waiting`);
    await sleep(200);
  }
}

async function count(url: string, tokenFile: string): Promise<number> {
  const token = (await readFile(tokenFile, "utf8")).trim();
  const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
  return ((await response.json()) as { total_entries?: number }).total_entries ?? 0;
}
