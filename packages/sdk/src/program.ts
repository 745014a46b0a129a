/**
 * The narrow door between a DAG's bundle and the engine's child processes. A bundle carries its own copy of this
 * SDK, so the engine talks to it only through this protocol, found under a registered symbol, never by `instanceof`.
 */
import type { DagManifest, Json } from "./manifest.ts";

/** Where a DAG keeps its program; registered, so that two copies of the SDK agree on it. */
export const PROGRAM = Symbol.for("tradewind.program");

/** What the engine can ask of a DAG. `protocol` grows when a field changes its meaning. */
export interface Program {
  readonly protocol: 1;
  describe(): DagManifest;
  /**
   * Runs one attempt, then the task's callback for its outcome. Never rejects: whatever user code does comes back as
   * an outcome. An attempt whose `host.abort` has fired runs no callback: only the supervisor knows why it was aborted.
   */
  run(call: TaskCall): Promise<TaskOutcome>;
  /** Runs a callback of the DAG or of a task, e.g. after an attempt whose process was killed. */
  callback(call: CallbackCall): Promise<CallbackOutcome>;
}

/** One attempt of one task instance. */
export interface TaskCall {
  readonly taskId: string;
  readonly mapIndex: number;
  readonly tryNumber: number;
  /** Highest try number that is still followed by a retry: a failure of try n is retried while n <= maxTries. */
  readonly maxTries: number;
  readonly attempt: string;
  /** Where to enter: null runs `execute`; otherwise the method a deferral named. */
  readonly step: { readonly method: string; readonly kwargs: Json; readonly event: Json } | null;
  /** By input name. For a mapped upstream the value is the array of all outputs, in index order. */
  readonly inputs: Readonly<Record<string, SettledInput>>;
  readonly run: RunFacts;
  /** The run's conf, as given; the program validates it against `params`. */
  readonly conf: Json;
  /** Outputs longer than this, as UTF-8 JSON, fail the attempt. 1 MB when left out. */
  readonly maxOutputBytes?: number;
  readonly host: TaskHost;
}

/** An upstream's end state and output, as the engine knows it. */
export interface SettledInput {
  readonly state: "success" | "failed" | "skipped" | "upstream_failed" | "removed" | "none";
  readonly value: Json | undefined;
}

/** The run an attempt belongs to. Instants are ISO strings. */
export interface RunFacts {
  readonly dagId: string;
  readonly runId: string;
  readonly runType: string;
  readonly logicalDate: string | null;
  readonly intervalStart: string | null;
  readonly intervalEnd: string | null;
  readonly runAfter: string;
  readonly startedAt: string | null;
  readonly version: number;
}

/** What an attempt may ask of the process that supervises it. */
export interface TaskHost {
  readonly abort: AbortSignal;
  log(level: LogLevel, message: string, fields?: Readonly<Record<string, Json>>): void;
  output(taskId: string, mapIndex: number | null): Promise<Json | undefined>;
  variable(key: string): Promise<string | undefined>;
  connection(id: string): Promise<ConnectionFacts | undefined>;
}

export type LogLevel = "debug" | "info" | "warn" | "error";

/** A stored connection, as user code sees it. */
export interface ConnectionFacts {
  readonly id: string;
  readonly type: string;
  readonly host: string | null;
  readonly port: number | null;
  readonly login: string | null;
  readonly password: string | null;
  readonly schema: string | null;
  readonly extra: Json;
}

/** How an attempt ended. Control flow is a value here, never an exception. */
export type TaskOutcome =
  /** `skip`: downstream task ids that a branch or short-circuit rules out, transitive closure already applied. */
  | { readonly kind: "success"; readonly output: Json | undefined; readonly skip: readonly string[] }
  | { readonly kind: "skipped"; readonly reason: string | null }
  /** `retry` false: the author asked to fail without another try, or another try cannot help. */
  | { readonly kind: "failed"; readonly error: ErrorFacts; readonly retry: boolean };

/** An error, flattened for the log and the API. */
export interface ErrorFacts {
  readonly name: string;
  readonly message: string;
  readonly stack: string | null;
  /** A stable code where the error has one (see docs/errors.md). */
  readonly code: string | null;
}

export interface CallbackCall {
  /** null: a callback of the run itself. */
  readonly taskId: string | null;
  readonly event: "success" | "failure" | "retry";
  readonly run: RunFacts;
  readonly tryNumber: number;
  readonly error: ErrorFacts | null;
  readonly conf: Json;
  readonly host: TaskHost;
}

export type CallbackOutcome = { readonly ok: true } | { readonly ok: false; readonly error: ErrorFacts };
