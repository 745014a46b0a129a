/** The records of a run: outputs, errors, logs, timeline. Replaces the store and the log files. */
import {
  type Change,
  InputReader,
  type Instance,
  isFinished,
  type RunModel,
  successSignals,
  waitEndsAt,
} from "@tradewind/engine/model";
import type { Json } from "@tradewind/sdk";
import type { SignalArgs } from "@tradewind/sdk/builtin-triggers";
import type {
  Deferral,
  ErrorFacts,
  RunFacts,
  SettledInput,
  SignalToSend,
  TaskHost,
} from "@tradewind/sdk/program";
import type { LogLine, RunOptions, RunProgress } from "../options.ts";
import type { Action, DeadLetter, NoticeResult, SentSignal, TaskResult, TimelineEntry } from "../result.ts";
import { SignalLog } from "../signal/signal-log.ts";
import { History, restarted } from "./history.ts";
import type { InnerRuns } from "./inner-runs.ts";
import type { TryEnd } from "./reports.ts";
import { connectionOf } from "./run-facts.ts";

/** The functions of the journal that any code of the run can call. */
export type JournalHost = Pick<
  TaskHost,
  "log" | "output" | "variable" | "connection" | "triggerRun" | "runEnd" | "isLatest" | "send"
>;

const UNDER_WAY: ReadonlySet<string> = new Set(["running", "restarting", "deferred", "up_for_reschedule"]);

export class Journal {
  readonly timeline: TimelineEntry[] = [];
  readonly logs: Record<string, LogLine[]> = {};
  readonly actions: Action[] = [];
  readonly deadLetters: DeadLetter[] = [];
  readonly notices: NoticeResult[] = [];
  readonly signals = new SignalLog();
  readonly #options: RunOptions;
  readonly #run: RunFacts;
  readonly #inner: InnerRuns;
  /** Milliseconds since the start of the run. */
  readonly #elapsed: () => number;
  readonly #history = new History();
  readonly #outputs = new Map<string, Json | undefined>();
  readonly #errors = new Map<string, ErrorFacts>();

  constructor(
    options: RunOptions,
    of: { readonly run: RunFacts; readonly inner: InnerRuns; readonly elapsed: () => number },
  ) {
    this.#options = options;
    this.#run = of.run;
    this.#inner = of.inner;
    this.#elapsed = of.elapsed;
  }

  report(progress: RunProgress): void {
    this.#options.onEvent?.(progress);
  }

  /** Starts a try, or resumes it after a wait. */
  begin(instance: Instance): void {
    if (this.#history.begin(instance, this.#elapsed())) this.#errors.delete(nameOf(instance));
  }

  keep(instance: Instance, outcome: TryEnd): void {
    const name = nameOf(instance);
    if (outcome.kind === "failed") this.#errors.set(name, outcome.error);
    else this.#errors.delete(name);
    if (outcome.kind !== "success") return;
    this.#outputs.set(name, outcome.output);
    const { dagId, runId } = this.#run;
    const source = { dagId, runId, taskId: instance.node.id, mapIndex: instance.mapIndex };
    for (const signal of successSignals(instance.node.manifest, outcome.signals ?? [], source))
      this.#send(instance.node.id, signal);
  }

  /** Removes the output of a task that begins again. */
  forget(instance: Instance): void {
    this.#outputs.delete(nameOf(instance));
  }

  /** Records an external signal. */
  addExternal(signal: SignalToSend): void {
    const { version } = this.signals.addExternal(signal);
    this.report({ type: "signal", taskId: null, version, ...signal });
  }

  notice(notice: NoticeResult): void {
    this.notices.push(notice);
    this.report({ type: "notice", ...notice });
  }

  act(action: Omit<Action, "atMs">): void {
    this.actions.push({ atMs: this.#elapsed(), ...action });
    this.report({ type: "action", ...action });
  }

  /** Records the changes of the model that an author would call a step. `durationMs` is that of the attempt. */
  record(changes: readonly Change[], durationMs = 0): void {
    const atMs = this.#elapsed();
    for (const { instance } of changes) {
      const { node, mapIndex, tryNumber, state, reason, retryAt } = instance;
      const hasEnded = isFinished(state) || state === "up_for_retry";
      if (!hasEnded && !UNDER_WAY.has(state)) continue;
      this.timeline.push({ atMs, taskId: node.id, mapIndex, tryNumber, state });
      if (!hasEnded) continue;
      const end = {
        state,
        output: this.#outputOf(instance),
        error: this.#errors.get(nameOf(instance)),
        reason,
      };
      const asTry = { ...end, state: state === "up_for_retry" ? "failed" : state };
      const hasRun = this.#history.end(instance, asTry, atMs);
      const ended = { taskId: node.id, mapIndex, tryNumber, ...end, retryAt: iso(retryAt) };
      this.report({ type: "ended", durationMs: hasRun ? durationMs : 0, ...ended });
    }
  }

  /** Records a try that was stopped for a restart. */
  restarted(instance: Instance, durationMs: number): void {
    const { node, mapIndex, tryNumber } = instance;
    const end = restarted(instance);
    this.#history.end(instance, end, this.#elapsed());
    this.report({ type: "ended", taskId: node.id, mapIndex, tryNumber, durationMs, ...end, retryAt: null });
  }

  /** Records that a wait has begun. */
  waits(instance: Instance, { trigger, name, method }: Deferral, since: number): void {
    const { wake, timed } = trigger;
    const wakeAt = wake === null ? null : "at" in wake ? Date.parse(wake.at) : since + wake.afterMs;
    const until = timed === null ? null : iso(wakeAt);
    const signal = trigger.kind === "tradewind.signal" ? (trigger.args as unknown as SignalArgs).key : null;
    const step = name ?? method;
    this.#waits(instance, { state: "deferred", trigger: trigger.kind, signal, step, until });
  }

  recordDeferral(instance: Instance): void {
    const until = iso(instance.retryAt);
    this.#waits(instance, { state: "up_for_reschedule", trigger: null, signal: null, step: null, until });
  }

  #waits(
    instance: Instance,
    of: Pick<Extract<RunProgress, { type: "waiting" }>, "state" | "trigger" | "signal" | "step" | "until">,
  ): void {
    const { mapIndex, node, tryNumber } = instance;
    const timeoutAt = iso(waitEndsAt(instance));
    this.report({ type: "waiting", taskId: node.id, mapIndex, tryNumber, timeoutAt, ...of });
  }

  /** The inputs of an instance. Copies, as in production: no task can change the input of another. */
  inputs(model: RunModel, instance: Instance): Record<string, SettledInput> {
    const reader = this.reader(model);
    const { inputs, rule } = instance.node.manifest;
    return Object.fromEntries(
      Object.entries(inputs).map(([name, source]) => {
        // Every output is in memory, of any size: there are no references.
        const { each, ...input } = structuredClone(reader.input(source, instance)) as SettledInput;
        return [name, each && rule !== "allSuccess" ? { ...input, each } : input];
      }),
    );
  }

  reader(model: RunModel): InputReader {
    return new InputReader(model, (taskId, mapIndex) => ({
      value: this.#outputs.get(`${taskId} ${mapIndex}`),
    }));
  }

  host(taskId: string, mapIndex: number): JournalHost {
    return {
      log: (level, message, fields) => {
        const line = { level, message, fields };
        const lines = this.logs[taskId] ?? [];
        lines.push(line);
        this.logs[taskId] = lines;
        this.report({ type: "log", taskId, mapIndex, ...line });
      },
      output: async (id) => structuredClone(this.#outputOfTask(id)),
      variable: async (key) => this.#options.variables?.[key],
      connection: async (id) => connectionOf(this.#options, id),
      triggerRun: async (request, program) => this.#inner.trigger(request, program, { taskId, mapIndex }),
      runEnd: (request) => this.#inner.runEnd(request),
      // A test runs just this run.
      isLatest: async () => true,
      send: async (signal) => ({ version: this.#send(taskId, signal).version }),
    };
  }

  #send(taskId: string, signal: SignalToSend): SentSignal {
    const sent = this.signals.send(signal, this.#run);
    this.report({ type: "signal", taskId, ...sent });
    return sent;
  }

  result(instance: Instance): TaskResult {
    const { node, mapIndex, state, tryNumber, reason } = instance;
    const error = state === "failed" ? this.#errors.get(nameOf(instance)) : undefined;
    return {
      taskId: node.id,
      mapIndex,
      state,
      tries: tryNumber,
      output: this.#outputOf(instance),
      error,
      reason,
      history: this.#history.of(instance),
    };
  }

  #outputOf(instance: Instance): Json | undefined {
    return instance.state === "success" ? this.#outputs.get(nameOf(instance)) : undefined;
  }

  /** For a mapped task: the list of its outputs. */
  #outputOfTask(taskId: string): Json | undefined {
    if (this.#outputs.has(`${taskId} -1`)) return this.#outputs.get(`${taskId} -1`);
    const own = [...this.#outputs].filter(([name]) => name.startsWith(`${taskId} `));
    const index = (name: string) => Number(name.slice(taskId.length + 1));
    own.sort(([a], [b]) => index(a) - index(b));
    return own.length > 0 ? own.map(([, value]) => value ?? null) : undefined;
  }
}

/** Unambiguous: ids have no space. */
function nameOf({ mapIndex, node }: Instance): string {
  return `${node.id} ${mapIndex}`;
}

function iso(moment: number | null): string | null {
  return moment === null ? null : new Date(moment).toISOString();
}
