/**
 * A command that is a process of its own: it runs until a signal, or until it has finished. The first signal stops it in
 * good order, and the exit code is then 0. While a scheduler drains, the next signal ends the drain. Any further one ends
 * the process at once, with the code a shell gives to that signal. A start that does not heed the first one is ended, too.
 * What comes within a moment is the same signal: the terminal sends it to all of its
 * processes, and npm, which is one of them, passes it on.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Session } from "../../session.ts";

export interface Running {
  /** Resolves when it has nothing left to do; left out: it runs until a signal. */
  readonly finished?: Promise<void>;
  stop(): Promise<void>;
  /** Ends the drain that a stop has begun. False: there is none. */
  endDrain?(): boolean;
}

/** How long a start may take to undo what it has done. */
const UNDO_MS = 15_000;
const LAST_WORDS_MS = 1_000;
const ECHO_MS = 300;
/** Not needed after the start: what reads the environment later, a library or a diagnostic report, does not find them. */
const SECRET_VARIABLES = [
  "DATABASE_URL",
  "TRADEWIND_SECRET_KEY",
  "TRADEWIND_SIGNALS_TOKEN",
  "TRADEWIND_TOKEN",
];
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
  let endDrain = () => false;
  const release = session.host.onSignal(["SIGINT", "SIGTERM"], (signal) => {
    const endAtOnce = () => {
      session.terminal.note("Stopped at once; what was running is picked up at the next start.");
      session.host.exit(128 + SIGNALS[signal as keyof typeof SIGNALS]);
    };
    if (performance.now() - toldAt < ECHO_MS) return;
    const isAgain = controller.signal.aborted;
    if (isAgain && !endDrain()) return endAtOnce();
    toldAt = performance.now();
    if (isAgain) return session.note("Asking running tasks to stop… once more to stop at once.");
    session.note(`Stopping (${signal})… once more to stop at once.`);
    // Whoever waits for something that does not come, a database that never answers, does not look at the signal.
    if (isStarting) late = setTimeout(endAtOnce, UNDO_MS);
    controller.abort();
    stopping.resolve();
  });
  try {
    const running = await start(controller.signal);
    for (const name of SECRET_VARIABLES) delete session.host.env[name];
    isStarting = false;
    endDrain = () => running.endDrain?.() ?? false;
    clearTimeout(late);
    try {
      const watching = controller.signal.aborted ? undefined : onStarted(running, controller.signal);
      await Promise.race(running.finished ? [stopping.promise, running.finished] : [stopping.promise]);
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
