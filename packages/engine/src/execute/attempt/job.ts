/**
 * The work of a task process: an attempt of a task, a callback, or a reaction to a signal. A job has the message for the
 * child, the log, and the event that reports its end. It is independent of the process that runs it.
 */

import type { ConnectionFacts, ErrorFacts } from "@tradewind/sdk/program";
import { durationText, errorText } from "@tradewind/sdk/wording";
import { AttemptLog } from "../../log/attempt-log.ts";
import type { LogWriter } from "../../log/log-writer.ts";
import { maskedError } from "../../log/masked-error.ts";
import type { Known, LargePlace, LargeValue, OutputReference } from "../../model/index.ts";
import type { AttemptOutputs, OpenText } from "../../output/large-outputs.ts";
import { SecretMask } from "../../secret/mask.ts";
import { connectionSecrets, variableSecrets } from "../../secret/secret-forms.ts";
import { EngineError, messageOf } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import { missingVariableHint } from "../../service/missing-variable.ts";
import type {
  AnswerRequest,
  Assignment,
  AttemptAssignment,
  CallbackAssignment,
  ExecutorEvent,
  ReactionAssignment,
} from "../contract.ts";
import { attemptOutcome, maskedOutcome, withStoredOutput } from "./attempt-outcome.ts";
import { callbackError, reactionAnswer } from "./callback-outcome.ts";
import type { ChildEnd } from "./child-end.ts";
import { errorFacts } from "./end-errors.ts";
import { CLOSING, callbackSubject, sequence, storedText, subjectOf, waitingText } from "./job-wording.ts";
import { IncomingOutput } from "./large-transfer.ts";
import type { CallbackMessage, Question, ReactMessage, RunMessage } from "./protocol.ts";

export interface JobSettings {
  readonly answer: AnswerRequest;
  readonly logs: LogWriter;
  readonly logger: Logger;
  readonly maxLogBytes: number;
  readonly memoryMb: number | null;
  readonly callbackTimeoutMs: number;
  /** null: large outputs are not supported, and fail their task. */
  readonly outputs: AttemptOutputs | null;
  /** Names of environment variables of this process that are not passed to user code. */
  readonly withheld: ReadonlySet<string>;
}

export type Job = AttemptJob | CallbackJob | ReactionJob;

abstract class BaseJob {
  readonly id: string;
  abstract readonly assignment: Assignment;
  abstract readonly subject: string;
  readonly mask = new SecretMask();
  readonly log: AttemptLog;
  readonly bundleHash: string;
  readonly settings: JobSettings;
  /** The bundle on this machine; set before the job is placed. */
  bundlePath = "";
  /** "waiting" in the queue of the executor, "placed" with a process, "ended" when its end is known. */
  state: "waiting" | "placed" | "ended" = "waiting";
  /** By performance.now(); 0: not yet. */
  placedAt = 0;
  /** When the try started, by performance.now(): the clocks of this machine and the database may differ. */
  readonly begunAt: number;
  #processSecrets: Set<string> | null = null;
  /** Set by the process that runs the job. Called when the log on disk falls behind the output of the task. */
  onPressure: ((high: boolean) => void) | null = null;

  constructor(assignment: Assignment, settings: JobSettings, opening: () => string) {
    this.id = assignment.id;
    this.bundleHash = assignment.bundleHash;
    this.begunAt = performance.now() - (assignment.kind === "attempt" ? assignment.elapsedMs : 0);
    this.settings = settings;
    this.log = new AttemptLog({
      logs: settings.logs,
      key: assignment.logKey,
      maxBytes: settings.maxLogBytes,
      mask: this.mask,
      opening,
      begunAt: () => (this.placedAt === 0 ? null : Date.now() - (performance.now() - this.placedAt)),
      onPressure: (high) => this.onPressure?.(high),
      onError: (error) =>
        settings.logger.warn("a task log cannot be written", {
          log: assignment.logKey,
          error: messageOf(error),
        }),
    });
  }

  /**
   * @param secrets The secrets of earlier jobs in the same process: modules may have kept them, and this job may print
   *   them. The secrets of this job are added.
   */
  share(secrets: Set<string>): void {
    this.#processSecrets = secrets;
    if (secrets.size > 0) this.mask.inherit(new Set(secrets));
  }

  /** Answers a request of user code. Secrets in the answer are masked in the log from now on. */
  async answer(ask: Question): Promise<Known | undefined> {
    const answer = await this.settings.answer(this.assignment, ask, performance.now() - this.begunAt);
    if (ask.what === "variable" && answer !== undefined) {
      for (const name of new Set([ask.key, ask.name ?? ask.key]))
        this.#hide(variableSecrets(name, answer as string), `variable "${ask.key}"`);
    }
    if (ask.what === "connection" && answer !== undefined)
      this.#hide(connectionSecrets(answer as unknown as ConnectionFacts), `connection "${ask.connectionId}"`);
    return answer;
  }

  /** The large values among the inputs. */
  get large(): readonly LargePlace[] {
    return [];
  }

  /** @throws EngineError if the object is missing or differs from what was stored. */
  openLarge(value: LargeValue): Promise<OpenText> {
    const { outputs } = this.settings;
    if (outputs !== null) return outputs.open(value, this.id);
    return Promise.reject(new EngineError("OUTPUT_UNREADABLE", "This executor reads no large outputs."));
  }

  /** A piece of a large output, which only an attempt has. Resolves when the next piece can be written. */
  piece(_text: string): Promise<void> {
    return Promise.resolve();
  }

  /** True if pieces of an output have arrived: the output is stored before the end is reported. */
  get hasLarge(): boolean {
    return false;
  }

  keepLarge(_end: ChildEnd): Promise<void> {
    return Promise.resolve();
  }

  /** Adds a hint to the error and to the log if the error names an environment variable that is not passed to tasks. */
  protected explained(error: ErrorFacts, { report }: ChildEnd): ErrorFacts {
    const hint = missingVariableHint(error.message, this.settings.withheld, { given: report?.env ?? [] });
    if (hint === null) return error;
    this.log.engine("warn", hint);
    return { ...error, message: `${error.message}\n${hint}` };
  }

  #hide(secrets: readonly string[], origin: string): void {
    for (const secret of secrets) {
      this.#processSecrets?.add(secret);
      if (!this.mask.add(secret) && secret !== "") {
        this.log.engine("warn", `A value of ${origin} is too short to be hidden in this log.`);
      }
    }
  }
}

export class AttemptJob extends BaseJob {
  readonly subject: string;
  readonly assignment: AttemptAssignment;
  #incoming: IncomingOutput | null = null;
  #stored: OutputReference | ErrorFacts | null = null;

  constructor(assignment: AttemptAssignment, settings: JobSettings) {
    super(
      assignment,
      settings,
      () => `Try ${assignment.tryNumber} of ${subjectOf(assignment)}${sequence(assignment)}.`,
    );
    this.subject = subjectOf(assignment);
    this.assignment = assignment;
  }

  get timeoutMs(): number | null {
    return this.assignment.timeoutMs;
  }

  get elapsedMs(): number {
    return this.assignment.elapsedMs;
  }

  get memoryMb(): number | null {
    return this.assignment.memoryMb ?? this.settings.memoryMb;
  }

  get fresh(): boolean {
    return this.assignment.isolation === "fresh";
  }

  message(): RunMessage {
    const { id: attempt, taskId, mapIndex, tryNumber, maxTries, resumePoint } = this.assignment;
    const { conf, elapsedMs, inputs, run, signals, startSignals } = this.assignment;
    const { bundlePath: bundle } = this;
    const call = {
      ...{ attempt, taskId, mapIndex, tryNumber, maxTries, resumePoint, elapsedMs, inputs, run, conf },
      ...(startSignals && { startSignals }),
    };
    const logLimit = this.settings.maxLogBytes;
    return { k: "run", id: attempt, bundle, call, logLimit, ...(signals && { signals }) };
  }

  override get large(): readonly LargePlace[] {
    return this.assignment.large ?? [];
  }

  override piece(text: string): Promise<void> {
    const { outputs } = this.settings;
    if (outputs === null) return Promise.resolve();
    this.#incoming ??= new IncomingOutput(outputs.draft());
    return this.#incoming.write(text);
  }

  override get hasLarge(): boolean {
    return this.#incoming !== null;
  }

  /** Called before `ended`. Stores the output only if the attempt has succeeded. */
  override async keepLarge(end: ChildEnd): Promise<void> {
    const { outputs } = this.settings;
    const incoming = this.#incoming;
    if (incoming === null || outputs === null) return;
    const outcome = attemptOutcome(this.subject, end);
    if (outcome.kind !== "success" || end.report?.large !== true) return await incoming.discard();
    const { id: attempt, dagRunId: runId, mapIndex, run, taskId } = this.assignment;
    try {
      const place = { dagId: run.dagId, runId, run: run.runId, taskId, mapIndex, attempt };
      this.#stored = await outputs.keep(await incoming.whole(), place);
    } catch (error) {
      this.#stored = errorFacts("OUTPUT_NOT_STORED", messageOf(error));
    }
  }

  /** The event that reports the end. Writes the closing line of the log. */
  ended(end: ChildEnd): ExecutorEvent {
    const outcome = maskedOutcome(
      withStoredOutput(attemptOutcome(this.subject, end), this.#stored),
      this.mask,
    );
    const event = { type: "ended", attempt: this.id, at: Date.now() } as const;
    if (outcome.kind === "failed") {
      this.log.engine("error", errorText(outcome.error));
      return { ...event, outcome: { ...outcome, error: this.explained(outcome.error, end) } };
    }
    if (outcome.kind === "success" && outcome.stored) this.log.engine("info", storedText(outcome.stored));
    if (outcome.kind === "skipped")
      this.log.engine("info", `Skipped: ${outcome.reason ?? "no reason given"}.`);
    else if (outcome.kind === "deferred") this.log.engine("info", waitingText(outcome));
    else if (outcome.kind === "rescheduled")
      this.log.engine("info", `Rescheduled: runs again in ${durationText(outcome.afterMs)}.`);
    else if (!this.log.silent) this.log.engine("info", CLOSING[outcome.kind]);
    return { ...event, outcome };
  }
}

class CallbackJob extends BaseJob {
  readonly subject: string;
  readonly assignment: CallbackAssignment;
  readonly memoryMb: number | null = null;
  readonly elapsedMs = 0;
  readonly fresh: boolean = false;

  constructor(assignment: CallbackAssignment, settings: JobSettings) {
    super(assignment, settings, () => `Callback "${assignment.event}" of ${callbackSubject(assignment)}.`);
    this.subject = `The callback "${assignment.event}" of ${callbackSubject(assignment)}`;
    this.assignment = assignment;
  }

  get timeoutMs(): number | null {
    return this.settings.callbackTimeoutMs;
  }

  message(): CallbackMessage {
    const { taskId, event, run, tryNumber, error, conf, id } = this.assignment;
    const { deadline, groupId, mapIndex = -1, wait } = this.assignment;
    const of = { taskId, ...(deadline && { deadline }), ...(wait && { wait }) };
    const call = { ...of, ...(groupId && { groupId, mapIndex }), event, run, tryNumber, error, conf };
    return { k: "callback", id, bundle: this.bundlePath, call, logLimit: this.settings.maxLogBytes };
  }

  ended(end: ChildEnd): ExecutorEvent {
    const found =
      end.interference?.why === "cancel" && end.interference.isLost !== true
        ? errorFacts("CALLBACK_CANCELLED", `${this.subject} was cancelled.`)
        : callbackError(this.subject, end);
    const error = found === null ? null : maskedError(found, this.mask);
    if (error === null) return { type: "callbackEnded", callbackId: this.id, error };
    this.log.engine("error", `Callback failed: ${errorText(error)}`);
    return { type: "callbackEnded", callbackId: this.id, error: this.explained(error, end) };
  }
}

class ReactionJob extends BaseJob {
  readonly subject: string;
  readonly assignment: ReactionAssignment;
  readonly memoryMb: number | null = null;
  readonly elapsedMs = 0;
  readonly fresh: boolean = false;

  constructor(assignment: ReactionAssignment, settings: JobSettings) {
    const { signal, taskId } = assignment;
    super(
      assignment,
      settings,
      () => `Signal "${signal.key}", version ${signal.version}, for task "${taskId}".`,
    );
    this.subject = `onSignal of task "${taskId}"`;
    this.assignment = assignment;
  }

  get timeoutMs(): number | null {
    return this.assignment.timeoutMs;
  }

  message(): ReactMessage {
    const { taskId, run, tryNumber, conf, signal } = this.assignment;
    const call = { taskId, run, tryNumber, conf, signal };
    return { k: "react", id: this.id, bundle: this.bundlePath, call, logLimit: this.settings.maxLogBytes };
  }

  ended(end: ChildEnd): ExecutorEvent {
    const { action, error } = reactionAnswer(this.subject, end);
    const { id: reactionId } = this.assignment;
    if (error === null) {
      if (!this.log.silent) this.log.engine("info", `Answered ${action}.`);
      return { type: "reactionEnded", reactionId, action, error };
    }
    const facts = maskedError(error, this.mask);
    this.log.engine("error", `No answer: ${errorText(facts)}`);
    return { type: "reactionEnded", reactionId, action: null, error: this.explained(facts, end) };
  }
}

export function jobOf(assignment: Assignment, settings: JobSettings): Job {
  if (assignment.kind === "attempt") return new AttemptJob(assignment, settings);
  if (assignment.kind === "callback") return new CallbackJob(assignment, settings);
  return new ReactionJob(assignment, settings);
}

/** The grace period of a streaming task; null: the job is not one. */
export function streamGrace(job: Job): number | null {
  return job instanceof AttemptJob ? (job.assignment.streamGraceMs ?? null) : null;
}
