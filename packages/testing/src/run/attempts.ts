/**
 * The running attempts of this process, and how they are stopped. Code in the same process cannot be killed: an attempt
 * that was asked to stop has to end by itself.
 *
 * On a virtual clock time stands still while a task works. A streaming task never ends, and neither does a task that
 * waits to be stopped; so both count as waiting after a period of real time without a call of `ctx` and without an end.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { type AttemptOutcome, type Cancel, type Instance, isStreaming } from "@tradewind/engine/model";
import type { DagManifest } from "@tradewind/sdk/manifest";
import type { Program, TaskOutcome } from "@tradewind/sdk/program";
import { DagTestError } from "../errors.ts";
import type { RunOptions } from "../options.ts";
import { audible, Silence } from "../signal/silence.ts";
import { type AttemptCall, timedAttempt } from "./timed-attempt.ts";

/** The end of an attempt. */
export interface EndedAttempt {
  readonly instance: Instance;
  readonly attempt: string;
  readonly outcome: AttemptOutcome;
  readonly durationMs: number;
}

interface Running {
  readonly instance: Instance;
  readonly stop: AbortController;
  readonly silence: Silence | null;
  /** Set when it was asked to stop: whether its success still counts. */
  keepsSuccess: boolean | null;
  /** Abandons it after the grace period. */
  patience: NodeJS.Timeout | undefined;
}

export interface AttemptsParts {
  readonly program: Program;
  readonly isVirtual: boolean;
  /** The period without calls; missing: the default of the task. */
  readonly settleMs: number | undefined;
  /** Fires when the run has ended. */
  readonly runOver: AbortSignal;
  readonly onEnd: (ended: EndedAttempt) => void;
  /** Called when an attempt has become silent. */
  readonly onSilence: () => void;
  /** The test cannot run as written. */
  readonly refuse: (error: DagTestError) => void;
}

const STREAMING_SETTLE_MS = 50;
const BATCH_SETTLE_MS = 1_000;
/**
 * In real time, regardless of the grace period: a slow machine must not fail the test, and a hanging test needs an
 * error.
 */
const PATIENCE_MS = { least: 1_000, most: 4_000 };

export class Attempts {
  readonly #parts: AttemptsParts;
  readonly #running = new Map<string, Running>();

  constructor(parts: AttemptsParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#running.size;
  }

  /** The number of running attempts of batch tasks. */
  get batchSize(): number {
    return [...this.#running.values()].filter(({ instance }) => !isStreaming(instance.node.manifest)).length;
  }

  /** The number of running attempts of this task. */
  countOf(taskId: string): number {
    return [...this.#running.values()].filter(({ instance }) => instance.node.id === taskId).length;
  }

  /** Returns whether an attempt is working. @param mayBeStopped A pending event may stop a task. */
  isBusy(mayBeStopped: boolean): boolean {
    return [...this.#running.values()].some(({ instance, keepsSuccess, silence }) => {
      if (keepsSuccess !== null || silence?.isSilent !== true) return true;
      return !mayBeStopped && !isStreaming(instance.node.manifest);
    });
  }

  /** @param isStoppable An event may stop it while it works. */
  start(instance: Instance, call: AttemptCall, isStoppable: boolean): void {
    const { isVirtual, onSilence, runOver, settleMs } = this.#parts;
    const { manifest } = instance.node;
    const usual = isStreaming(manifest) ? STREAMING_SETTLE_MS : BATCH_SETTLE_MS;
    const isWatched = isVirtual && (isStreaming(manifest) || isStoppable);
    const silence = isWatched ? new Silence(settleMs ?? usual, onSilence) : null;
    const stop = new AbortController();
    const running: Running = { instance, stop, silence, keepsSuccess: null, patience: undefined };
    this.#running.set(call.attempt, running);
    const startedAt = performance.now();
    const limits = { timeoutMs: manifest.timeoutMs, stop: AbortSignal.any([stop.signal, runOver]) };
    const host = silence ? audible(call.host, silence) : call.host;
    const paced = isStreaming(manifest) ? { ...host, send: unhurried(host.send) } : host;
    void timedAttempt(this.#parts.program, { ...call, host: paced }, limits).then((outcome) =>
      this.#end(call.attempt, running, outcome, performance.now() - startedAt),
    );
  }

  /** Asks an attempt to stop. Has no effect if it has already ended. */
  stop({ attempt, graceMs, isFinal, reason }: Cancel): void {
    const running = this.#running.get(attempt);
    if (!running) return;
    const { instance, keepsSuccess, silence, stop } = running;
    // Once its success was ruled out, it stays ruled out.
    running.keepsSuccess = isFinal && keepsSuccess !== false;
    silence?.end();
    if (keepsSuccess !== null) return;
    stop.abort(new DOMException(reason, "AbortError"));
    const { isVirtual, refuse } = this.#parts;
    const patienceMs = isVirtual ? Math.min(graceMs, PATIENCE_MS.most) : graceMs;
    const late = () => refuse(notStopped(instance, reason));
    running.patience = setTimeout(late, Math.max(PATIENCE_MS.least, patienceMs));
  }

  #end(attempt: string, running: Running, outcome: TaskOutcome, durationMs: number): void {
    const { instance, keepsSuccess, patience, silence } = running;
    this.#running.delete(attempt);
    silence?.end();
    clearTimeout(patience);
    const isWanted = keepsSuccess === null || (keepsSuccess && outcome.kind === "success");
    this.#parts.onEnd({
      instance,
      attempt,
      outcome: isWanted ? outcome : { kind: "cancelled" },
      durationMs,
    });
  }
}

type Send = AttemptCall["host"]["send"];

/** A stream that sends without a pause must yield to others, as with a process of its own. */
function unhurried(send: Send): Send {
  return async (signal) => {
    const sent = await send(signal);
    await nextTurn();
    return sent;
  };
}

function notStopped({ node }: Instance, reason: string): DagTestError {
  return new DagTestError(
    "TW_TEST_NOT_STOPPED",
    `task "${node.id}" was ${reason} and still runs`,
    "it must end when ctx.abort is aborted: the engine would kill its process after the grace period, a test cannot",
  );
}

/** Tasks that may be stopped while they work. */
export function stoppable({ tasks }: DagManifest, { commands = [] }: RunOptions): Set<string> {
  const ordered = commands.flatMap(({ action, task }) => (action === "start" ? [] : (task ?? [])));
  const ruled = tasks.filter(
    ({ reacts, rules = [] }) => reacts || rules.some(({ action }) => action !== "start"),
  );
  return new Set([...ordered, ...ruled.map(({ taskId }) => taskId)]);
}
