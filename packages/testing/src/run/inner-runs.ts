/**
 * Runs of other DAGs that tasks request. A run whose DAG is loaded, because a sub-DAG or a triggered DAG was imported,
 * executes here beside the run that waits for it, unless the test gives the outcome of the wait. Other runs are only
 * recorded.
 */

import type { TriggerOutcome } from "@tradewind/engine/model";
import { wholeState } from "@tradewind/engine/model";
import type { Json } from "@tradewind/sdk";
import type {
  Program,
  RunEnd,
  RunEndRequest,
  RunFacts,
  SettledInput,
  TriggeredRunFacts,
  TriggerRunRequest,
} from "@tradewind/sdk/program";
import type { RunOptions, RunProgress } from "../options.ts";
import type { RunResult, SubRun } from "../result.ts";
import { approvalsOf } from "../trigger/given-answers.ts";
import type { Firing } from "../trigger/scripted-triggers.ts";
import type { Clock } from "./clock.ts";

export const RUN_KIND = "tradewind.dagrun";

/** Runs a DAG of the test to its end. */
export type Play = (program: Program, options: RunOptions, facts: Partial<RunFacts>) => Promise<RunResult>;

export interface InnerRunsParts {
  readonly clock: Clock;
  readonly options: RunOptions;
  readonly run: RunFacts;
  readonly play: Play;
}

interface Asker {
  readonly taskId: string;
  readonly mapIndex: number;
}

interface Inner {
  readonly begunAt: number;
  readonly result: Promise<RunResult>;
}

export class InnerRuns {
  /** Runs that were only recorded. */
  readonly recorded: TriggerRunRequest[] = [];
  /** Runs that have ended. */
  readonly ended: SubRun[] = [];
  readonly #parts: InnerRunsParts;
  readonly #runs = new Map<string, Inner>();
  /** The outputs of recorded runs that the test gives. */
  readonly #givenOutputs = new Map<string, Readonly<Record<string, Json>>>();

  constructor(parts: InnerRunsParts) {
    this.#parts = parts;
  }

  trigger(request: TriggerRunRequest, program: Program | undefined, asker: Asker): TriggeredRunFacts {
    const { dagId, runId } = request;
    const isKnown =
      this.#runs.has(nameOf(request)) || this.recorded.some((run) => nameOf(run) === nameOf(request));
    if (isKnown) return { runId, created: false };
    if (program === undefined || this.#isScripted(asker.taskId)) this.recorded.push(structuredClone(request));
    else this.#begin(dagId, structuredClone(request), program, asker);
    return { runId, created: true };
  }

  /** When such a run ends, and how; null: it does not run here. Rejects if the run cannot execute. */
  async firing(args: Json, since: number): Promise<Firing | null> {
    const of = args as unknown as { readonly dagId: string; readonly runId: string };
    const inner = this.#runs.get(nameOf(of));
    if (inner === undefined) return null;
    const { state, timeline } = await inner.result;
    const lasted = timeline.reduce((most, { atMs }) => Math.max(most, atMs), 0);
    const payload = { dagId: of.dagId, runId: of.runId, logicalDate: null, state };
    return { at: Math.max(since, inner.begunAt + lasted), outcome: { kind: "event", payload, key: null } };
  }

  /** Records the outcome that the test gives for a wait; with `outputs`, also the outputs of that run's tasks. */
  setOutcome(args: Json, outcome: TriggerOutcome): void {
    const outputs = outcome.kind === "event" && (outcome.payload as { outputs?: unknown } | null)?.outputs;
    if (typeof outputs === "object" && outputs !== null)
      this.#givenOutputs.set(nameOf(args as unknown as TriggerRunRequest), outputs as Record<string, Json>);
  }

  async runEnd(request: RunEndRequest): Promise<RunEnd | null> {
    const inner = this.#runs.get(nameOf(request));
    const told = this.#givenOutputs.get(nameOf(request)) ?? {};
    const result = await inner?.result;
    const tasks = request.tasks.map((id) => [id, result ? standing(result, id) : given(told[id])] as const);
    return { state: result?.state ?? "success", tasks: structuredClone(Object.fromEntries(tasks)) };
  }

  #begin(dagId: string, request: TriggerRunRequest, program: Program, asker: Asker): void {
    const { clock, options, play, run } = this.#parts;
    const begunAt = clock.now();
    const { approvals = {}, connections, concurrency, settle, triggers = {}, variables } = options;
    const { tasks: manifests } = program.describe();
    const tasks = new Set(manifests.map(({ taskId }) => taskId));
    const result = play(
      program,
      {
        conf: request.conf,
        now: new Date(begunAt),
        logicalDate: request.logicalDate,
        ...(options.clock && { clock: options.clock }),
        // Entries for a task of this run do not apply to a task of the inner run.
        triggers: Object.fromEntries(
          Object.entries(triggers).filter(([key]) => !key.includes("/") || tasks.has(key.split("/", 1)[0]!)),
        ),
        approvals: approvalsOf(approvals, manifests),
        ...(connections && { connections }),
        ...(concurrency !== undefined && { concurrency }),
        ...(settle !== undefined && { settle }),
        ...(variables && { variables }),
        onEvent: (event) => options.onEvent?.(inside(asker.taskId, event)),
      },
      {
        runId: request.runId,
        runType: "operator_triggered",
        ...(request.child && { intervalStart: run.intervalStart, intervalEnd: run.intervalEnd }),
      },
    );
    // The wait for this run receives the error.
    result.then(
      (ended) => this.ended.push({ dagId, ...asker, run: ended }),
      () => {},
    );
    this.#runs.set(nameOf(request), { begunAt, result });
  }

  #isScripted(taskId: string): boolean {
    const { triggers = {} } = this.#parts.options;
    return [taskId, `${taskId}/ended`, RUN_KIND].some((key) => Object.hasOwn(triggers, key));
  }
}

/** Unambiguous: the id of a DAG has no line break. */
function nameOf({ dagId, runId }: { readonly dagId: string; readonly runId: string }): string {
  return `${dagId}\n${runId}`;
}

function standing(result: RunResult, taskId: string): SettledInput {
  const state = wholeState(result.tasks.filter((task) => task.taskId === taskId).map(({ state }) => state));
  return { state, value: state === "success" ? result.outputs[taskId] : undefined };
}

function given(value: Json | undefined): SettledInput {
  return { state: "success", value };
}

/** A step of an inner run, as a step of the outer run. */
function inside(taskId: string, event: RunProgress): RunProgress {
  return event.taskId === null ? event : { ...event, taskId: `${taskId} > ${event.taskId}` };
}
