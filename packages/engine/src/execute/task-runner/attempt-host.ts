/**
 * The host of one attempt in its process. Requests go to the supervisor over the IPC channel. After the end of the
 * attempt, late replies are ignored and late requests are rejected.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { getEventListeners } from "node:events";
import type { Json, TriggerCall } from "@tradewind/sdk/manifest";
import type {
  ConnectionFacts,
  JournalEntry,
  LogLevel,
  OpenWork,
  ReceivedSignal,
  RunEnd,
  RunEndRequest,
  SignalToSend,
  TaskHost,
  TriggeredRunFacts,
  TriggerRunRequest,
} from "@tradewind/sdk/program";
import { isEngineKind } from "../../model/trigger/engine-kinds.ts";
import type { FromChild, Question } from "../attempt/protocol.ts";
import { readRunEnd } from "../attempt/run-end-reply.ts";
import type { OpenWorkTracker } from "./open-work.ts";
import type { OutputCapture } from "./output-capture.ts";
import type { TaskEnvironment } from "./task-environment.ts";

/** Signals that user code combined with AbortSignal.any, which adds no listener to them. */
const combined = new WeakSet<AbortSignal>();

/** Called once, before user code runs. */
export function watchCombinedSignals(): void {
  const any = AbortSignal.any.bind(AbortSignal);
  AbortSignal.any = (signals) => {
    const all = [...signals];
    for (const signal of all) combined.add(signal);
    return any(all);
  };
}

/** The name of the `ctx.step` whose code is running. */
const steps = new AsyncLocalStorage<string>();

interface Pending {
  readonly resolve: (value: Json | undefined) => void;
  readonly reject: (error: Error) => void;
}

export interface HostChannel {
  readonly send: (message: FromChild) => void;
  readonly output: OutputCapture;
  readonly work: OpenWorkTracker;
  readonly environment: TaskEnvironment;
  /** Whether the process has to stay alive for a reply of the supervisor. */
  readonly await: (waiting: boolean) => void;
}

export class AttemptHost implements TaskHost {
  readonly id: string;
  readonly #controller = new AbortController();
  readonly #channel: HostChannel;
  readonly #pending = new Map<number, Pending>();
  readonly #signals: readonly ReceivedSignal[] | undefined;
  #questions = 0;
  #ended = false;

  /** @param signals The signals that started the attempt, if they came with its message. */
  constructor(id: string, channel: HostChannel, signals?: readonly ReceivedSignal[]) {
    this.id = id;
    this.#signals = signals;
    this.#channel = channel;
  }

  get abort(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether user code may be waiting for the abort alone. */
  get abortAwaited(): boolean {
    return combined.has(this.abort) || getEventListeners(this.abort, "abort").length > 0;
  }

  get aborted(): boolean {
    return this.#controller.signal.aborted;
  }

  log(level: LogLevel, message: string, fields?: Readonly<Record<string, Json>>): void {
    if (!this.#ended) this.#channel.output.record(level, String(message), fields);
  }

  async output(taskId: string, mapIndex: number | null): Promise<Json | undefined> {
    return await this.#request({ what: "output", taskId, mapIndex });
  }

  async variable(key: string, name?: string): Promise<string | undefined> {
    const ask = { what: "variable", key, ...(name !== undefined && { name }) } as const;
    return (await this.#request(ask)) as string | undefined;
  }

  environment(values: Readonly<Record<string, string>>): void {
    if (!this.#ended) this.#channel.environment.set(values);
  }

  async connection(id: string): Promise<ConnectionFacts | undefined> {
    return (await this.#request({ what: "connection", connectionId: id })) as ConnectionFacts | undefined;
  }

  async recall(): Promise<Readonly<Record<string, JournalEntry>>> {
    return ((await this.#request({ what: "recall" })) ?? {}) as unknown as Record<string, JournalEntry>;
  }

  async remember(name: string, value: Json): Promise<void> {
    await this.#request({ what: "remember", name, value });
  }

  async startSignals(): Promise<readonly ReceivedSignal[]> {
    return (
      this.#signals ??
      (((await this.#request({ what: "startSignals" })) ?? []) as unknown as ReceivedSignal[])
    );
  }

  async triggerRun(request: TriggerRunRequest): Promise<TriggeredRunFacts> {
    return (await this.#request({ what: "triggerRun", request })) as unknown as TriggeredRunFacts;
  }

  async runEnd(request: RunEndRequest): Promise<RunEnd | null> {
    return readRunEnd((await this.#request({ what: "runEnd", request })) ?? null);
  }

  async isLatest(): Promise<boolean> {
    return (await this.#request({ what: "isLatest" })) as boolean;
  }

  async send(signal: SignalToSend): Promise<{ version: number }> {
    return (await this.#request({ what: "send", signal })) as { version: number };
  }

  inStep<T>(name: string, work: () => Promise<T>): Promise<T> {
    return steps.run(name, work);
  }

  currentStep(): string | null {
    return steps.getStore() ?? null;
  }

  async check(trigger: TriggerCall): Promise<Json | undefined> {
    if (isEngineKind(trigger.kind)) return await this.#request({ what: "check", trigger });
    const { checkBuiltin } = await import("../../builtin/index.ts");
    return await checkBuiltin(trigger, {
      abort: this.abort,
      log: (level, message, fields) => this.log(level, message, fields),
      variable: (key) => this.variable(key),
      connection: (id) => this.connection(id),
      polled: () => {},
      limited: (_key, _limit, work) => work(),
    });
  }

  async openWork(): Promise<readonly OpenWork[]> {
    return await this.#channel.work.leftOpen(this);
  }

  /** Aborts user code. */
  interrupt(why: "timeout" | "cancel", reason: string): void {
    this.#controller.abort(new DOMException(reason, why === "timeout" ? "TimeoutError" : "AbortError"));
  }

  answer(n: number, reply: { readonly value?: Json; readonly error?: string; readonly code?: string }): void {
    const pending = this.#pending.get(n);
    if (pending === undefined) return;
    this.#pending.delete(n);
    if (this.#pending.size === 0) this.#channel.await(false);
    if (reply.error === undefined) pending.resolve(reply.value);
    else pending.reject(refusal(reply.error, reply.code ?? "TASK_SERVICE_FAILED"));
  }

  end(): void {
    this.#ended = true;
    this.#pending.clear();
    this.#channel.work.close(this);
  }

  #request(ask: Question): Promise<Json | undefined> {
    if (this.#ended) return Promise.reject(new Error("the task has already ended"));
    const n = ++this.#questions;
    return new Promise((resolve, reject) => {
      this.#pending.set(n, { resolve, reject });
      this.#channel.await(true);
      this.#channel.work.outside(() => this.#channel.send({ k: "request", id: this.id, n, ask }));
    });
  }
}

/** Without frames: they would show the channel, not the caller. */
function refusal(message: string, code: string): Error {
  const error = Object.assign(new Error(message), { code });
  error.stack = `${error.name}: ${message}`;
  return error;
}
