/**
 * A command that runs as a service, until a signal or until it has finished. The first signal stops it gracefully with exit
 * code 0. While a scheduler drains, the next signal ends the drain. Any further signal ends the process at once, with the
 * shell's code for that signal. A start that does not react to the first signal is ended after a timeout.
 * Signals within a short time count as one: the terminal sends the signal to all of its processes, and npm forwards it.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Session } from "../../session.ts";
import { type HealthPort, openHealthPort } from "./health-port.ts";

export interface Running {
  /** Resolves when the service has nothing left to do; without it, the service runs until a signal. */
  readonly finished?: Promise<void>;
  /** Whether its lease is held. Left out: it has none. */
  isReady?(): boolean;
  stop(): Promise<void>;
  /** Ends the drain begun by a stop. Returns false if there is none. */
  endDrain?(): boolean;
}

/** Time for a start to undo its work. */
const UNDO_MS = 15_000;
const LAST_WORDS_MS = 1_000;
const ECHO_MS = 300;
/** Removed after the start, so that no library or diagnostic report reads them later. */
const SECRET_VARIABLES = [
  "DATABASE_URL",
  "REDIS_URL",
  "TRADEWIND_SECRET_KEY",
  "TRADEWIND_SIGNALS_TOKEN",
  "TRADEWIND_TOKEN",
  "TRADEWIND_EXECUTORS",
];
const SIGNALS = { SIGINT: 2, SIGTERM: 15 } as const;

/**
 * Starts the service and runs it until a signal. The promise of `onStarted` must settle soon after its signal aborts. `start`
 * may return early when its signal aborts.
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
  let isReady = () => false;
  let health: HealthPort | undefined;
  const release = session.host.onSignal(["SIGINT", "SIGTERM"], (signal) => {
    const endAtOnce = () => {
      session.terminal.note("Stopped at once. Interrupted work resumes at the next start.");
      session.host.exit(128 + SIGNALS[signal as keyof typeof SIGNALS]);
    };
    if (performance.now() - toldAt < ECHO_MS) return;
    const isAgain = controller.signal.aborted;
    if (isAgain && !endDrain()) return endAtOnce();
    toldAt = performance.now();
    const again = signal === "SIGINT" ? "Press Ctrl-C again" : `Send ${signal} again`;
    session.note(`Stopping${isAgain ? " running tasks" : ""} (${signal})… ${again} to stop at once.`);
    if (isAgain) return;
    // A start that waits, e.g. for a database that does not respond, may ignore the signal.
    if (isStarting) late = setTimeout(endAtOnce, UNDO_MS);
    controller.abort();
    stopping.resolve();
  });
  try {
    if (session.host.env.TRADEWIND_HEALTH_PORT) {
      health = await openHealthPort(session.host.env, () => isReady());
      controller.signal.throwIfAborted();
    }
    const running = await start(controller.signal);
    for (const name of SECRET_VARIABLES) delete session.host.env[name];
    isStarting = false;
    endDrain = () => running.endDrain?.() ?? false;
    isReady = () => running.isReady?.() ?? true;
    clearTimeout(late);
    try {
      const watching = controller.signal.aborted ? undefined : onStarted(running, controller.signal);
      await Promise.race(running.finished ? [stopping.promise, running.finished] : [stopping.promise]);
      // Let open requests finish first: they would delay the stop of the server.
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
    health?.close();
  }
}
