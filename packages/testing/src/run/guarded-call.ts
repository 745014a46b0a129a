/**
 * Calls user code as strictly as the engine's task process (execute/task-runner of the engine), although it shares this
 * process. Open work, an unhandled rejection, an error in a timer, process.exit and a wait that can never end fail the
 * call that caused it, and no other. After the call has ended, they are ignored.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { OpenWorkTracker } from "@tradewind/engine/open-work";
import { errorFacts } from "@tradewind/sdk/error-facts";
import type { ErrorFacts, TaskHost } from "@tradewind/sdk/program";
import { setEnvironment } from "./call-environment.ts";

/** @param subject `task "load"`, for messages. @param failed The outcome of a call that has crashed. */
export async function guarded<T>(
  { failed, host, subject }: { host: TaskHost; subject: string; failed: (error: ErrorFacts) => T },
  call: (host: TaskHost) => Promise<T>,
): Promise<T> {
  const tracker = OpenWorkTracker.installed();
  const underWay = installedGuards(tracker);
  const guardedCall = new GuardedCall(subject);
  underWay.add(guardedCall);
  try {
    const watching: TaskHost = {
      ...host,
      openWork: () => tracker.leftOpen(guardedCall),
      environment: (values) => setEnvironment(tracker, guardedCall, values),
    };
    const outcome = tracker.run(guardedCall, () => call(watching));
    await Promise.race([outcome, guardedCall.crashed]);
    // One turn: a rejected promise without a handler is reported now.
    await nextTurn();
    return guardedCall.error === null ? await outcome : failed(guardedCall.error);
  } finally {
    underWay.delete(guardedCall);
    tracker.close(guardedCall);
  }
}

class GuardedCall {
  readonly subject: string;
  readonly crashed: Promise<void>;
  error: ErrorFacts | null = null;
  readonly #crash: () => void;

  constructor(subject: string) {
    this.subject = subject;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.crashed = promise;
    this.#crash = resolve;
  }

  crash(error: ErrorFacts): void {
    this.error ??= error;
    this.#crash();
  }
}

const GUARDS = Symbol.for("tradewind.guardedCalls");

/**
 * Once per process, even with several copies of this module, and until the process ends: a call that has ended may
 * still throw. @returns The running calls.
 */
function installedGuards(tracker: OpenWorkTracker): Set<GuardedCall> {
  const home = globalThis as { [GUARDS]?: Set<GuardedCall> };
  if (home[GUARDS] !== undefined) return home[GUARDS];
  const underWay = new Set<GuardedCall>();
  home[GUARDS] = underWay;
  const caller = () => tracker.current() as GuardedCall | null;
  const emit = process.emit as (...args: unknown[]) => boolean;
  const guardedEmit = (...args: unknown[]): boolean => {
    const isCrash = args[0] === "unhandledRejection" || args[0] === "uncaughtException";
    const blamed = isCrash ? caller() : null;
    if (blamed === null) return emit.apply(process, args);
    blamed.crash(errorFacts(args[1]));
    return true;
  };
  const exit = process.exit.bind(process);
  const guardedExit = (code?: number | string | null): never => {
    const blamed = caller();
    if (blamed === null) return exit(code);
    const error = exitError(blamed.subject, code ?? process.exitCode ?? 0);
    Error.captureStackTrace(error, guardedExit);
    blamed.crash(errorFacts(error));
    throw error;
  };
  Object.assign(process, { emit: guardedEmit, exit: guardedExit });
  process.on("beforeExit", () => {
    for (const call of underWay) call.crash(NEVER_SETTLED);
  });
  return underWay;
}

/** With the message of the engine. */
function exitError(subject: string, code: number | string): Error {
  const message = `${subject} called process.exit(${code}): let it return instead, only then is it known to be done.`;
  return Object.assign(new Error(message), { name: "TaskError", code: "TASK_PROCESS_DIED" });
}

const NEVER_SETTLED: ErrorFacts = {
  name: "Error",
  message:
    "The task waits for a promise that nothing can settle any more: no timer, no connection, no request is open.",
  stack: null,
  code: "TASK_NEVER_SETTLED",
};
