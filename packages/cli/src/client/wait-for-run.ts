/**
 * Waits for the end of a run. The server reports the end at once; task progress is polled, more slowly the longer it takes.
 * Tolerates a server restart. Leaving the wait does not affect the run.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { type Client, path } from "./client.ts";
import { type DagRun, isRunEnded } from "./resources.ts";

export interface Wait {
  readonly dagId: string;
  readonly runId: string;
  readonly timeoutMs: number | undefined;
  readonly signal: AbortSignal;
  readonly onProgress: (run: DagRun) => void;
}

export type WaitResult =
  | { readonly kind: "ended"; readonly run: DagRun }
  | { readonly kind: "timeout" }
  | { readonly kind: "detached" };

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;
/** Give up if the server is unreachable for longer than this. */
const PATIENCE_MS = 30_000;

export async function waitForRun(client: Client, wait: Wait): Promise<WaitResult> {
  const deadline = wait.timeoutMs === undefined ? Number.POSITIVE_INFINITY : Date.now() + wait.timeoutMs;
  const runPath = path`/dags/${wait.dagId}/dagRuns/${wait.runId}`;
  const what = `cannot watch the run ${wait.runId} of ${wait.dagId}`;
  let pause = FIRST_PAUSE_MS;
  let answeredAt = Date.now();
  while (!wait.signal.aborted) {
    try {
      const run = await client.get<DagRun>(runPath, { what, signal: wait.signal });
      wait.onProgress(run);
      if (isRunEnded(run)) return { kind: "ended", run };
      answeredAt = Date.now();
    } catch (error) {
      if (wait.signal.aborted) break;
      const away = error instanceof CliError && error.exit === EXIT.server;
      if (!away || Date.now() - answeredAt > PATIENCE_MS) throw error;
    }
    if (Date.now() >= deadline) return { kind: "timeout" };
    await waitForChange(client, runPath, { ms: Math.min(pause, deadline - Date.now()), signal: wait.signal });
    pause = Math.min(LONGEST_PAUSE_MS, pause * 1.5);
  }
  return { kind: "detached" };
}

/** Returns after this time, or at once when the run has ended. */
async function waitForChange(
  client: Client,
  runPath: string,
  { ms, signal }: { ms: number; signal: AbortSignal },
) {
  try {
    const query = { timeout: ms / 1000, interval: Math.max(0.05, Math.min(0.2, ms / 2000)) };
    const response = await client.open(`${runPath}/wait`, { what: "cannot wait for the run", query, signal });
    await response.text();
  } catch {
    // Aborted, or the server is unreachable: the next read of the run shows which.
    await sleep(ms, undefined, { signal }).catch(() => {});
  }
}
