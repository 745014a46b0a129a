/** The calls that a supervisor's child process makes to a DAG's program, with defaults for a test. */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Dag } from "../src/author/dag.ts";
import type { Json, TriggerCall } from "../src/manifest.ts";
import {
  type ConnectionFacts,
  type JournalEntry,
  type LogLevel,
  PROGRAM,
  type RunEnd,
  type RunEndRequest,
  type SettledInput,
  type SignalToSend,
  type TaskCall,
  type TaskHost,
  type TaskOutcome,
  type TriggerRunRequest,
} from "../src/runtime/program.ts";

export interface LogLine {
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: Readonly<Record<string, Json>> | undefined;
}

/** A host that records its log and reads from plain records. */
export class RecordingHost implements TaskHost {
  readonly lines: LogLine[] = [];
  readonly controller = new AbortController();
  readonly abort = this.controller.signal;
  readonly outputs: Record<string, Json> = {};
  readonly variables: Record<string, string> = {};
  readonly connections: Record<string, ConnectionFacts> = {};
  readonly journal: Record<string, JournalEntry> = {};
  recalls = 0;
  readonly checks: TriggerCall[] = [];
  readonly checkAnswers: (Json | undefined)[] = [];
  readonly runs: TriggerRunRequest[] = [];
  readonly runEnds: RunEndRequest[] = [];
  runEndAnswer: RunEnd | null = null;
  latest = true;
  readonly sent: SignalToSend[] = [];
  readonly #step = new AsyncLocalStorage<string>();

  log(level: LogLevel, message: string, fields?: Readonly<Record<string, Json>>): void {
    this.lines.push({ level, message, fields });
  }
  async output(taskId: string): Promise<Json | undefined> {
    return this.outputs[taskId];
  }
  async variable(key: string): Promise<string | undefined> {
    return this.variables[key];
  }
  async connection(id: string): Promise<ConnectionFacts | undefined> {
    return this.connections[id];
  }
  async recall(): Promise<Readonly<Record<string, JournalEntry>>> {
    this.recalls++;
    return { ...this.journal };
  }
  async remember(name: string, value: Json): Promise<void> {
    this.journal[name] = { kind: "step", value };
  }
  inStep<T>(name: string, work: () => Promise<T>): Promise<T> {
    return this.#step.run(name, work);
  }
  currentStep(): string | null {
    return this.#step.getStore() ?? null;
  }
  async check(trigger: TriggerCall): Promise<Json | undefined> {
    this.checks.push(trigger);
    return this.checkAnswers.shift();
  }
  async triggerRun(request: TriggerRunRequest): Promise<{ runId: string; created: boolean }> {
    const created = !this.runs.some(({ runId }) => runId === request.runId);
    this.runs.push(request);
    return { runId: request.runId, created };
  }
  async runEnd(request: RunEndRequest): Promise<RunEnd | null> {
    this.runEnds.push(request);
    return this.runEndAnswer;
  }
  async isLatest(): Promise<boolean> {
    return this.latest;
  }
  async send(signal: SignalToSend): Promise<{ version: number }> {
    return { version: this.sent.push(signal) };
  }
}

/** Runs one attempt of a task like the engine. */
export function attempt(dag: Dag, taskId: string, overrides: Partial<TaskCall> = {}): Promise<TaskOutcome> {
  return dag[PROGRAM].run(taskCall(dag, taskId, overrides));
}

export function taskCall(dag: Dag, taskId: string, overrides: Partial<TaskCall> = {}): TaskCall {
  return {
    taskId,
    mapIndex: -1,
    tryNumber: 1,
    maxTries: 0,
    attempt: "attempt-1",
    resumePoint: null,
    elapsedMs: 0,
    inputs: {},
    run: {
      dagId: dag.id,
      runId: "manual__1",
      runType: "manual",
      logicalDate: "2026-01-02T00:00:00.000Z",
      intervalStart: "2026-01-01T00:00:00.000Z",
      intervalEnd: "2026-01-02T00:00:00.000Z",
      runAfter: "2026-01-02T00:00:00.000Z",
      startedAt: null,
      version: 7,
    },
    conf: {},
    host: new RecordingHost(),
    ...overrides,
  };
}

export function success(value?: Json): SettledInput {
  return { state: "success", value };
}
