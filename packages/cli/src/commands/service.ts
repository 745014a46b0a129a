/**
 * A command that is a process of its own: it runs until a signal. The first signal stops it in good order, and the
 * exit code is then 0; the second ends it at once, with the code a shell gives to that signal. A start that does not
 * heed the first one is ended, too. What comes within a moment is the same signal: the terminal sends it to all of its
 * processes, and npm, which is one of them, passes it on.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Session } from "../session.ts";

export interface Running {
  stop(): Promise<void>;
}

/** How long a start may take to undo what it has done. */
const UNDO_MS = 15_000;
const LAST_WORDS_MS = 1_000;
const ECHO_MS = 300;
const SIGNALS = { SIGINT: 2, SIGTERM: 15 } as const;

/**
 * Starts, says so, and stays until it is told to stop; what `onStarted` returns must end soon after its signal. `start`
 * may give up as soon as its own is aborted.
 */
export async function serve<R extends Running>(
  session: Session,
  start: (signal: AbortSignal) => Promise<R>,
  onStarted: (running: R, signal: AbortSignal) => void | Promise<void>,
): Promise<void> {
  const stopping = Promise.withResolvers<void>();
  const controller = new AbortController();
  let late: NodeJS.Timeout | undefined;
  let isStarting = true;
  let toldAt = Number.NEGATIVE_INFINITY;
  const release = session.host.onSignal(["SIGINT", "SIGTERM"], (signal) => {
    const endAtOnce = () => {
      session.terminal.note("Stopped at once; what was running is picked up at the next start.");
      session.host.exit(128 + SIGNALS[signal as keyof typeof SIGNALS]);
    };
    if (performance.now() - toldAt < ECHO_MS) return;
    if (controller.signal.aborted) return endAtOnce();
    toldAt = performance.now();
    session.note(`Stopping (${signal})… once more to stop at once.`);
    // Whoever waits for something that does not come, a database that never answers, does not look at the signal.
    if (isStarting) late = setTimeout(endAtOnce, UNDO_MS);
    controller.abort();
    stopping.resolve();
  });
  try {
    const running = await start(controller.signal);
    isStarting = false;
    clearTimeout(late);
    try {
      const watching = controller.signal.aborted ? undefined : onStarted(running, controller.signal);
      await stopping.promise;
      // What is still being asked of the server is answered first: an open request would hold up its end.
      await Promise.race([watching, sleep(LAST_WORDS_MS, undefined, { ref: false })]);
    } finally {
      await running.stop();
    }
    session.note("Stopped.");
  } catch (error) {
    if (!isStarting || error !== controller.signal.reason) throw error;
    session.note("Stopped.");
  } finally {
    clearTimeout(late);
    release();
  }
}
