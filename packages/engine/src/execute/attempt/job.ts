/**
 * One thing a task process is asked to do: an attempt of a task, a callback, or a reaction to a signal. Knows how to
 * describe itself to the child, what its log is, and how to say that it has ended; it does not know which process runs
 * it.
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
  /** null: an output that is too large for the database fails its task. */
  readonly outputs: LargeOutputs | null;
  /** Names of environment variables that this process has and user code has not. */
  readonly withheld: ReadonlySet<string>;
}

export type Job = AttemptJob | CallbackJob | ReactionJob;

type JournalQuestion = Extract<Question, { what: "recall" | "remember" | "startedBy" }>;

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
  /** "waiting" in the executor's line, "placed" with a process, "ended" when its end was reported. */
  state: "waiting" | "placed" | "ended" = "waiting";
  /** By performance.now(); 0: not yet. */
  placedAt = 0;
  /** When the try began, by performance.now(): what this machine calls a moment may be another one to the database. */
  readonly begunAt: number;
  #processSecrets: Set<string> | null = null;
  /** Set by the process that runs it: the disk is slower than the task's output. */
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
   * @param secrets What earlier jobs in the same process were given: modules may have kept it, and this job may print
   *   it. What this one is given is added.
   */
  share(secrets: Set<string>): void {
    this.#processSecrets = secrets;
    if (secrets.size > 0) this.mask.inherit(new Set(secrets));
  }

  /** Answers user code; what it is given and looks like a secret is hidden in the log from now on. */
  async answer(ask: Question): Promise<Known | undefined> {
    const { services } = this.settings;
    if (ask.what === "recall" || ask.what === "remember" || ask.what === "startedBy")
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

  /** The attempt that it is; null: none. */
  protected place(): AttemptPlace | null {
    return null;
  }

  /** What is large among its inputs. */
  get large(): readonly LargePlace[] {
    return [];
  }

  /** @throws EngineError when it is not there, or not what was stored. */
  openLarge(value: LargeValue): Promise<OpenText> {
    const { outputs } = this.settings;
    if (outputs !== null) return outputs.open(value);
    return Promise.reject(new EngineError("OUTPUT_UNREADABLE", "This executor reads no large outputs."));
  }

  /** A piece of a large output; only an attempt has one. Answers when there is room for more. */
  piece(_text: string): Promise<void> {
    return Promise.resolve();
  }

  /** Pieces of an output came: it is to be stored before the end is told. */
  get hasLarge(): boolean {
    return false;
  }

  keepLarge(_end: ChildEnd): Promise<void> {
    return Promise.resolve();
  }

  /** Only an attempt of a task has steps to remember, and signals that started it. */
  protected journal(_ask: JournalQuestion): Promise<Json | undefined> {
    return Promise.reject(new Error("only a task has steps"));
  }

  /** Names the variable that the error may be about; says so in the log, too. */
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
    if (ask.what === "startedBy")
      return (await services.signals(this.workload.startedBy ?? [])) as unknown as Json;
    if (ask.what === "recall") return (await services.recall(place)) as unknown as Json;
    await services.remember(place, ask);
    return null;
  }

  message(): RunMessage {
    const { attempt, taskId, mapIndex, tryNumber, maxTries, resumePoint, elapsedMs, inputs } = this.workload;
    const { bundlePath: bundle, conf, run, signals, startedBy } = this.workload;
    const call = {
      ...{ attempt, taskId, mapIndex, tryNumber, maxTries, resumePoint, elapsedMs, inputs, run, conf },
      ...(startedBy && { startedBy }),
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

  /** Before `ended`. Only an output that the attempt succeeds with is stored. */
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
      this.log.engine("info", `To be called again in ${durationText(outcome.afterMs)}.`);
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
    // Whoever submits it numbers reactions as he likes: it must not be taken for an attempt or a callback.
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

/** How long a stream may take to end when it is asked to; null: it is none. */
export function streamGrace(job: Job): number | null {
  return job instanceof AttemptJob ? (job.workload.streamGraceMs ?? null) : null;
}
