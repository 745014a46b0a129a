import { readPostmaster, servesFolder } from "./postmaster-file.ts";

/**
 * Stops a server when this process ends normally. At "exit" a signal can be sent but not awaited; the server shuts down
 * on its own. A signal without a handler would end the process without "exit", so it is handled here; if the program has
 * a handler of its own, the program decides when to stop the server.
 */
export function stopAtExit(data: string): () => void {
  if (folders.size === 0) {
    process.on("exit", stopAll);
    for (const signal of SIGNALS) process.on(signal, onSignal);
  }
  folders.add(data);
  return () => {
    if (!folders.delete(data) || folders.size > 0) return;
    process.off("exit", stopAll);
    for (const signal of SIGNALS) process.off(signal, onSignal);
  };
}

const SIGNALS: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP"];
const folders = new Set<string>();

function onSignal(signal: NodeJS.Signals): void {
  if (process.listenerCount(signal) > 1) return;
  stopAll();
  process.off(signal, onSignal);
  process.kill(process.pid, signal);
}

function stopAll(): void {
  for (const data of folders) {
    const pid = readPostmaster(data)?.pid;
    if (pid === undefined || !servesFolder(pid, data)) continue;
    try {
      process.kill(pid, "SIGINT");
    } catch {
      // It has just ended.
    }
  }
}
