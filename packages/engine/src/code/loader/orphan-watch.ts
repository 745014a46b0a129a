/**
 * Ends this process, and all it started, when its parent is gone. A healthy child notices the closed channel; a child
 * whose main thread is in an endless loop does not, and would use a core forever. A separate thread notices.
 */
import { Worker } from "node:worker_threads";

const CHECK_MS = 500;

export function dieWithParent(): void {
  const watch = `
    const parent = ${process.ppid};
    setInterval(() => {
      if (process.ppid === parent) return;
      try { process.kill(-process.pid, "SIGKILL"); } catch { process.kill(process.pid, "SIGKILL"); }
    }, ${CHECK_MS});`;
  const worker = new Worker(watch, { eval: true, execArgv: [], stdout: true, stderr: true });
  worker.on("error", () => undefined);
  worker.unref();
}
