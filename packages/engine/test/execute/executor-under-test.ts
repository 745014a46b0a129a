/** A real LocalExecutor with real child processes: submits tasks of `program.mjs` and awaits their reports. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Json } from "@tradewind/sdk/manifest";
import { type BuildOptions, build } from "esbuild";
import { answerFrom } from "../../src/execute/attempt/answer-request.ts";
import type {
  AttemptAssignment,
  CallbackAssignment,
  Executor,
  ExecutorEvent,
  ReactionAssignment,
  TaskServices,
} from "../../src/execute/contract.ts";
import { LocalExecutor } from "../../src/execute/local/local-executor.ts";
import type { LocalExecutorOptions } from "../../src/execute/local/local-executor-options.ts";
import { LogFolder } from "../../src/log/log-folder.ts";
import type { LogStore } from "../../src/log/log-store.ts";
import { type LogLine, readLines } from "../../src/log/task-log.ts";
import type { AttemptOutcome } from "../../src/model/index.ts";
import { silentLogger } from "../../src/service/logger.ts";

const SDK_PATH = fileURLToPath(new URL("../../../sdk/src/index.ts", import.meta.url));
const PROGRAM_PATH = fileURLToPath(new URL("./program.mjs", import.meta.url));

type ExecutorOptions = Partial<Omit<LocalExecutorOptions, "logs">> & {
  readonly logs?: LogStore;
  readonly services?: TaskServices;
};

function logsBelow(dir: string): LogStore {
  return new LogFolder(join(dir, "logs"));
}

export class ExecutorUnderTest<E extends Executor = LocalExecutor> implements AsyncDisposable {
  readonly executor: E;
  readonly dir: string;
  readonly events: ExecutorEvent[] = [];
  readonly #logs: LogStore;
  readonly #waiting = new Set<() => void>();
  #serial = 0;

  private constructor(dir: string, executor: E, logs: LogStore) {
    this.dir = dir;
    this.executor = executor;
    this.#logs = logs;
  }

  /** A local executor that is not started. */
  static local(dir: string, { logs, services = SERVICES, ...options }: ExecutorOptions = {}): LocalExecutor {
    return new LocalExecutor({
      parallelism: 2,
      answer: answerFrom(services),
      // The hash of another bundle is its path.
      bundles: {
        known: (hash) => (hash === "program" ? PROGRAM_PATH : hash),
        path: async (hash) => hash,
      },
      logs: logs ?? logsBelow(dir),
      logger: silentLogger,
      graceMs: 300,
      ...options,
    });
  }

  /** Starts this executor, whose logs are below `dir`. */
  static async of<E extends Executor>(
    dir: string,
    executor: E,
    logs = logsBelow(dir),
  ): Promise<ExecutorUnderTest<E>> {
    const under = new ExecutorUnderTest(dir, executor, logs);
    await executor.start((event) => {
      under.events.push(event);
      for (const wake of under.#waiting) wake();
    });
    return under;
  }

  static async start(options: ExecutorOptions = {}): Promise<ExecutorUnderTest> {
    const dir = await mkdtemp(join(tmpdir(), "tradewind-execute-"));
    return await ExecutorUnderTest.of(dir, ExecutorUnderTest.local(dir, options), options.logs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.executor.stop(0);
    await rm(this.dir, { recursive: true, force: true });
  }

  /** Bundles a DAG file as the DAG processor does. Returns the path of the bundle. */
  async bundle(source: string, options: BuildOptions = {}): Promise<string> {
    const entry = join(this.dir, "dag.ts");
    const outfile = join(this.dir, "dag.mjs");
    await writeFile(entry, source);
    await build({
      entryPoints: [entry],
      outfile,
      bundle: true,
      platform: "node",
      format: "esm",
      conditions: ["source"],
      alias: { "@tradewind/sdk": SDK_PATH },
      logLevel: "silent",
      ...options,
    });
    return outfile;
  }

  assignment(taskId: string, more: Partial<AttemptAssignment> = {}): AttemptAssignment {
    const id = more.id ?? `attempt-${++this.#serial}`;
    return {
      kind: "attempt",
      id,
      queue: "default",
      priority: 1,
      dagRunId: 7,
      taskId,
      mapIndex: -1,
      tryNumber: 1,
      maxTries: 0,
      bundleHash: "program",
      resumePoint: null,
      elapsedMs: 0,
      inputs: {},
      run: RUN,
      conf: {},
      timeoutMs: null,
      memoryMb: null,
      isolation: "warm",
      logKey: `${id}.log`,
      ...more,
    };
  }

  callback(more: Partial<CallbackAssignment> = {}): CallbackAssignment {
    const id = more.id ?? `callback-${++this.#serial}`;
    const facts = { dagRunId: 7, taskId: "noop", tryNumber: 1, error: null, run: RUN, conf: {} };
    return {
      kind: "callback",
      id,
      queue: "default",
      bundleHash: "program",
      event: "failure",
      logKey: `${id}.log`,
      ...facts,
      ...more,
    };
  }

  /** The key of the signal selects the behaviour of `program.mjs`. */
  reaction(key: string, more: Partial<ReactionAssignment> = {}): ReactionAssignment {
    const id = more.id ?? `reaction-${++this.#serial}`;
    return {
      kind: "reaction",
      id,
      queue: "default",
      bundleHash: "program",
      taskId: "noop",
      tryNumber: 1,
      run: RUN,
      dagRunId: 7,
      conf: {},
      signal: { namespace: "default", key, value: null, version: 1 },
      timeoutMs: 60_000,
      logKey: `${id}.log`,
      ...more,
    };
  }

  submitReaction(key: string, more: Partial<ReactionAssignment> = {}): ReactionAssignment {
    const reaction = this.reaction(key, more);
    this.executor.submit([reaction]);
    return reaction;
  }

  async answered(reactionId: string): Promise<Extract<ExecutorEvent, { type: "reactionEnded" }>> {
    const event = await this.event(
      (found) => found.type === "reactionEnded" && found.reactionId === reactionId,
    );
    return event as Extract<ExecutorEvent, { type: "reactionEnded" }>;
  }

  submit(taskId: string, more: Partial<AttemptAssignment> = {}): AttemptAssignment {
    const assignment = this.assignment(taskId, more);
    this.executor.submit([assignment]);
    return assignment;
  }

  /** Submits a task and awaits its end. */
  async run(taskId: string, more: Partial<AttemptAssignment> = {}): Promise<AttemptOutcome> {
    return await this.ended(this.submit(taskId, more).id);
  }

  /** Submits a task that succeeds; returns its output. */
  async output<T extends Json>(taskId: string, more: Partial<AttemptAssignment> = {}): Promise<T> {
    const outcome = await this.run(taskId, more);
    if (outcome.kind !== "success") throw new Error(`${taskId} ended as ${JSON.stringify(outcome)}`);
    return outcome.output as T;
  }

  async ended(attempt: string): Promise<AttemptOutcome> {
    const event = await this.event((found) => found.type === "ended" && found.attempt === attempt);
    return (event as Extract<ExecutorEvent, { type: "ended" }>).outcome;
  }

  async started(attempt: string): Promise<number> {
    const event = await this.event((found) => found.type === "started" && found.attempt === attempt);
    return (event as Extract<ExecutorEvent, { type: "started" }>).pid;
  }

  /** The first matching event, past or future. */
  async event(matches: (event: ExecutorEvent) => boolean): Promise<ExecutorEvent> {
    for (;;) {
      const found = this.events.find(matches);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#waiting.delete(wake);
          resolve();
        };
        this.#waiting.add(wake);
      });
    }
  }

  /** The file of a log. */
  logPath(logKey: string): string {
    return join(this.dir, "logs", logKey);
  }

  async log(attempt: string): Promise<readonly LogLine[]> {
    for await (const log of this.#logs.view([""]).changed({ isAll: true }))
      if (log.key === `${attempt}.log`) return (await readLines(log, { limit: 1e9 })).lines;
    return [];
  }
}

const RUN: AttemptAssignment["run"] = {
  dagId: "testing",
  runId: "manual__1",
  runType: "manual",
  logicalDate: null,
  intervalStart: null,
  intervalEnd: null,
  runAfter: "2026-01-01T00:00:00.000Z",
  startedAt: null,
  version: 1,
};

export const SECRETS = {
  password: 'p4ss "wörd" with \\ and +',
  token: "tok-0123456789abcdef",
  key: "extra-key-77",
};

export const SERVICES: TaskServices = {
  output: async (dagRunId, taskId) => ({ dagRunId, taskId }),
  variable: async (key) => {
    if (key === "broken") throw new Error("connection to postgres://user:secret@db failed");
    return { plain: "a value", api_token: SECRETS.token }[key];
  },
  connection: async (id) => ({
    id,
    type: "postgres",
    host: "db.example",
    port: 5432,
    login: "user",
    password: SECRETS.password,
    schema: null,
    extra: { key: SECRETS.key, sslmode: "prefer" },
  }),
  signals: async () => [],
  recall: async () => ({}),
  remember: async () => {},
  check: async () => undefined,
  send: async () => ({ version: 1 }),
  triggerRun: async ({ runId }) => ({ runId, created: true }),
  runEnd: async () => null,
  isLatest: async () => true,
};
