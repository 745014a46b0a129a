/**
 * The work of a task process: an attempt of a task, a callback, or a reaction to a signal. A job has the message for the
 * child, the log, and the event that reports its end. It is independent of the process that runs it.
 */

import type { Json } from "@tradewind/sdk/manifest";
import type { ErrorFacts } from "@tradewind/sdk/program";
import { durationText, errorText } from "@tradewind/sdk/wording";
import { AttemptLog } from "../../log/attempt-log.ts";
import { maskedError } from "../../log/masked-error.ts";
import type { Known, LargePlace, LargeValue, OutputReference } from "../../model/index.ts";
import type { LargeOutputs, OpenText } from "../../output/large-outputs.ts";
import { SecretMask } from "../../secret/mask.ts";
import { connectionSecrets, variableSecrets } from "../../secret/secret-forms.ts";
import { EngineError, messageOf } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import { missingVariableHint } from "../../service/missing-variable.ts";
import type {
  AttemptPlace,
  CallbackWorkload,
  ExecutorEvent,
  ReactionWorkload,
  SenderPlace,
  TaskServices,
  Workload,
} from "../contract.ts";
import { attemptOutcome, maskedOutcome, withStoredOutput } from "./attempt-outcome.ts";
import { callbackError, reactionAnswer } from "./callback-outcome.ts";
import type { ChildEnd } from "./child-end.ts";
import { errorFacts } from "./end-errors.ts";
import { CLOSING, callbackSubject, sequence, storedText, subjectOf, waitingText } from "./job-wording.ts";
import { IncomingOutput } from "./large-transfer.ts";
import type { CallbackMessage, Question, ReactMessage, RunMessage } from "./protocol.ts";
import { runEndReply } from "./run-end-reply.ts";

export interface JobSettings {
  readonly services: TaskServices;
  readonly logger: Logger;
  readonly maxLogBytes: number;
  readonly memoryMb: number | null;
  readonly callbackTimeoutMs: number;
  /** null: large outputs are not supported, and fail their task. */
  readonly outputs: LargeOutputs | null;
  /** Names of environment variables of this process that are not passed to user code. */
  readonly withheld: ReadonlySet<string>;
}

export type Job = AttemptJob | CallbackJob | ReactionJob;

type JournalQuestion = Extract<Question, { what: "recall" | "remember" | "startSignals" }>;

abstract class BaseJob {
  abstract readonly id: string;
  abstract readonly subject: string;
  readonly mask = new SecretMask();
  readonly log: AttemptLog;
  readonly bundleHash: string;
  readonly dagRunId: number;
  readonly sender: SenderPlace;
  readonly runStartedAt: string | null;
  readonly settings: JobSettings;
  /** "waiting" in the queue of the executor, "placed" with a process, "ended" when its end is known. */
  state: "waiting" | "placed" | "ended" = "waiting";
  /** By performance.now(); 0: not yet. */
  placedAt = 0;
  /** When the try started, by performance.now(): the clocks of this machine and the database may differ. */
  readonly begunAt: number;
  #processSecrets: Set<string> | null = null;
  /** Set by the process that runs the job. Called when the log on disk falls behind the output of the task. */
  onPressure: ((high: boolean) => void) | null = null;

  constructor(
    workload: Workload | CallbackWorkload | ReactionWorkload,
    settings: JobSettings,
    opening: () => string,
  ) {
    this.bundleHash = workload.bundleHash;
    this.dagRunId = workload.dagRunId;
    const { dagId, runId } = workload.run;
    this.sender = { dagId, runId, taskId: workload.taskId ?? "" };
    this.runStartedAt = workload.run.startedAt;
    this.begunAt = performance.now() - ("elapsedMs" in workload ? workload.elapsedMs : 0);
    this.settings = settings;
    this.log = new AttemptLog({
      path: workload.logPath,
      maxBytes: settings.maxLogBytes,
      mask: this.mask,
      opening,
      begunAt: () => (this.placedAt === 0 ? null : Date.now() - (performance.now() - this.placedAt)),
      onPressure: (high) => this.onPressure?.(high),
      onError: (error) =>
        settings.logger.warn("a task log cannot be written", {
          path: workload.logPath,
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
    const { services } = this.settings;
    if (ask.what === "recall" || ask.what === "remember" || ask.what === "startSignals")
      return await this.journal(ask);
    if (ask.what === "check")
      return await services.check(ask.trigger, performance.now() - this.begunAt, this.runStartedAt);
    if (ask.what === "send") return { ...(await services.send(ask.signal, this.sender)) };
    if (ask.what === "triggerRun") return { ...(await services.triggerRun(ask.request, this.place())) };
    if (ask.what === "runEnd") return runEndReply(await services.runEnd(ask.request));
    if (ask.what === "isLatest") return await services.isLatest(this.dagRunId);
    if (ask.what === "output") return await services.output(this.dagRunId, ask.taskId, ask.mapIndex);
    if (ask.what === "variable") {
      const value = await services.variable(ask.key);
      for (const name of value === undefined ? [] : new Set([ask.key, ask.name ?? ask.key]))
        this.#hide(variableSecrets(name, value ?? ""), `variable "${ask.key}"`);
      return value;
    }
    const connection = await services.connection(ask.connectionId);
    if (connection !== undefined)
      this.#hide(connectionSecrets(connection), `connection "${ask.connectionId}"`);
    return connection as Json | undefined;
  }

  /** null: the job is not an attempt. */
  protected place(): AttemptPlace | null {
    return null;
  }

  /** The large values among the inputs. */
  get large(): readonly LargePlace[] {
    return [];
  }

  /** @throws EngineError if the object is missing or differs from what was stored. */
  openLarge(value: LargeValue): Promise<OpenText> {
    const { outputs } = this.settings;
    if (outputs !== null) return outputs.open(value);
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

  /** Only an attempt has recorded steps and starting signals. */
  protected journal(_ask: JournalQuestion): Promise<Json | undefined> {
    return Promise.reject(new Error("only a task has steps"));
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
  readonly id: string;
  readonly subject: string;
  readonly workload: Workload;
  #incoming: IncomingOutput | null = null;
  #stored: OutputReference | ErrorFacts | null = null;

  constructor(workload: Workload, settings: JobSettings) {
    super(
      workload,
      settings,
      () => `Try ${workload.tryNumber} of ${subjectOf(workload)}${sequence(workload)}.`,
    );
    this.id = workload.attempt;
    this.subject = subjectOf(workload);
    this.workload = workload;
  }

  get timeoutMs(): number | null {
    return this.workload.timeoutMs;
  }

  get elapsedMs(): number {
    return this.workload.elapsedMs;
  }

  get memoryMb(): number | null {
    return this.workload.memoryMb ?? this.settings.memoryMb;
  }

  get fresh(): boolean {
    return this.workload.isolation === "fresh";
  }

  protected override place(): AttemptPlace {
    const { dagRunId: runId, taskId, mapIndex, tryNumber, attempt } = this.workload;
    return { runId, taskId, mapIndex, tryNumber, attempt };
  }

  protected override async journal(ask: JournalQuestion): Promise<Json | undefined> {
    const place = this.place();
    const { services } = this.settings;
    if (ask.what === "startSignals")
      return (await services.signals(this.workload.startSignals ?? [])) as unknown as Json;
    if (ask.what === "recall") return (await services.recall(place)) as unknown as Json;
    await services.remember(place, ask);
    return null;
  }

  message(): RunMessage {
    const { attempt, taskId, mapIndex, tryNumber, maxTries, resumePoint, elapsedMs, inputs } = this.workload;
    const { bundlePath: bundle, conf, run, signals, startSignals } = this.workload;
    const call = {
      ...{ attempt, taskId, mapIndex, tryNumber, maxTries, resumePoint, elapsedMs, inputs, run, conf },
      ...(startSignals && { startSignals }),
    };
    const logLimit = this.settings.maxLogBytes;
    return { k: "run", id: attempt, bundle, call, logLimit, ...(signals && { signals }) };
  }

  override get large(): readonly LargePlace[] {
    return this.workload.large ?? [];
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
    const { attempt, dagRunId: runId, mapIndex, run, taskId } = this.workload;
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

export class CallbackJob extends BaseJob {
  readonly id: string;
  readonly subject: string;
  readonly workload: CallbackWorkload;
  readonly memoryMb: number | null = null;
  readonly elapsedMs = 0;
  readonly fresh: boolean = false;

  constructor(workload: CallbackWorkload, settings: JobSettings) {
    super(workload, settings, () => `Callback "${workload.event}" of ${callbackSubject(workload)}.`);
    this.id = workload.callbackId;
    this.subject = `The callback "${workload.event}" of ${callbackSubject(workload)}`;
    this.workload = workload;
  }

  get timeoutMs(): number | null {
    return this.settings.callbackTimeoutMs;
  }

  message(): CallbackMessage {
    const { taskId, event, run, tryNumber, error, conf, callbackId, bundlePath } = this.workload;
    const { deadline, groupId, mapIndex = -1, wait } = this.workload;
    const of = { taskId, ...(deadline && { deadline }), ...(wait && { wait }) };
    const call = { ...of, ...(groupId && { groupId, mapIndex }), event, run, tryNumber, error, conf };
    return { k: "callback", id: callbackId, bundle: bundlePath, call, logLimit: this.settings.maxLogBytes };
  }

  ended(end: ChildEnd): ExecutorEvent {
    const found =
      end.interference?.why === "cancel"
        ? errorFacts("CALLBACK_CANCELLED", `${this.subject} was cancelled.`)
        : callbackError(this.subject, end);
    const error = found === null ? null : maskedError(found, this.mask);
    if (error === null) return { type: "callbackEnded", callbackId: this.id, error };
    this.log.engine("error", `Callback failed: ${errorText(error)}`);
    return { type: "callbackEnded", callbackId: this.id, error: this.explained(error, end) };
  }
}

export class ReactionJob extends BaseJob {
  readonly id: string;
  readonly subject: string;
  readonly workload: ReactionWorkload;
  readonly memoryMb: number | null = null;
  readonly elapsedMs = 0;
  readonly fresh: boolean = false;

  constructor(workload: ReactionWorkload, settings: JobSettings) {
    const { reactionId, signal, taskId } = workload;
    super(
      workload,
      settings,
      () => `Signal "${signal.key}", version ${signal.version}, for task "${taskId}".`,
    );
    // Reaction ids are chosen by the scheduler: the prefix keeps them apart from attempts and callbacks.
    this.id = `reaction ${reactionId}`;
    this.subject = `onSignal of task "${taskId}"`;
    this.workload = workload;
  }

  get timeoutMs(): number | null {
    return this.workload.timeoutMs;
  }

  message(): ReactMessage {
    const { taskId, run, tryNumber, conf, signal, bundlePath } = this.workload;
    const call = { taskId, run, tryNumber, conf, signal };
    return { k: "react", id: this.id, bundle: bundlePath, call, logLimit: this.settings.maxLogBytes };
  }

  ended(end: ChildEnd): ExecutorEvent {
    const { action, error } = reactionAnswer(this.subject, end);
    const { reactionId } = this.workload;
    if (error === null) {
      if (!this.log.silent) this.log.engine("info", `Answered ${action}.`);
      return { type: "reactionEnded", reactionId, action, error };
    }
    const facts = maskedError(error, this.mask);
    this.log.engine("error", `No answer: ${errorText(facts)}`);
    return { type: "reactionEnded", reactionId, action: null, error: this.explained(facts, end) };
  }
}

/** The grace period of a streaming task; null: the job is not one. */
export function streamGrace(job: Job): number | null {
  return job instanceof AttemptJob ? (job.workload.streamGraceMs ?? null) : null;
}
