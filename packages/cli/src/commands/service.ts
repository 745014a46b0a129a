/**
 * A command that is a process of its own: it runs until a signal. The first signal stops it in good order, and the
 * exit code is then 0; the second ends it at once, with the code a shell gives to that signal.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Session } from "../session.ts";

export interface Running {
  stop(): Promise<void>;
}

const LAST_WORDS_MS = 1_000;
const SIGNALS = { SIGINT: 2, SIGTERM: 15 } as const;

/** Starts, says so, and stays until it is told to stop; what `onStarted` returns must end soon after its signal. */
export async function serve<R extends Running>(
  session: Session,
  start: () => Promise<R>,
  onStarted: (running: R, signal: AbortSignal) => void | Promise<void>,
): Promise<void> {
  const stopping = Promise.withResolvers<void>();
  const controller = new AbortController();
  const release = session.host.onSignal(["SIGINT", "SIGTERM"], (signal) => {
    if (controller.signal.aborted) {
      session.terminal.note("Stopped at once; what was running is picked up at the next start.");
      session.host.exit(128 + SIGNALS[signal as keyof typeof SIGNALS]);
    }
    session.note(`Stopping (${signal})… once more to stop at once.`);
    controller.abort();
    stopping.resolve();
  });
  try {
    // A signal that comes while it starts waits for the start: a half-started database is not left behind.
    const running = await start();
    try {
      const watching = controller.signal.aborted ? undefined : onStarted(running, controller.signal);
      await stopping.promise;
      // What is still being asked of the server is answered first: an open request would hold up its end.
      await Promise.race([watching, sleep(LAST_WORDS_MS, undefined, { ref: false })]);
    } finally {
      await running.stop();
    }
    session.note("Stopped.");
  } finally {
    release();
  }
}
