/**
 * Submits admitted instances to their executors, with all that an attempt needs as plain JSON. Runs after the commit, so everything can be read again; while the database is unavailable, it retries until the job loses its lease.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Json } from "@tradewind/sdk/manifest";
import type { ErrorFacts, ReceivedSignal, SettledInput } from "@tradewind/sdk/program";
import type { AttemptAssignment, Executor } from "../../execute/contract.ts";
import type { Lease } from "../../job/lease.ts";
import {
  type AttemptOutcome,
  apart,
  GRACE_MS,
  InputReader,
  type InputStanding,
  type Instance,
  isStreaming,
  type Known,
  type LargePlace,
  type OutputLookup,
} from "../../model/index.ts";
import { messageOf } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import { type Database, isTransient } from "../../store/database/database.ts";
import { loadOutputs } from "../../store/run/run-load.ts";
import { type ResumableWait, resumableWaits } from "../../store/trigger/deferrals.ts";
import type { Admitted } from "../admit/admission.ts";
import type { RunActor } from "../loaded/run-actor.ts";
import type { LargeLengths } from "./large-lengths.ts";
import { OutputCache, outputKey } from "./output-cache.ts";

export interface DispatcherOptions {
  readonly database: Database;
  readonly logger: Logger;
  readonly lengths: LargeLengths;
  /** After an interruption of trust, runs may have another owner: attempts that wait here are dropped. */
  readonly lease: Pick<Lease, "epoch" | "isTrusted" | "now">;
  /** Whether this job may still dispatch this attempt: it is not stopping, and the attempt is active. */
  readonly isWanted: (attempt: string) => boolean;
  /** The attempt was not dispatched, so no executor will report its end. */
  readonly dropped: (attempt: string) => void;
  /** The attempt cannot be dispatched. */
  readonly failed: (attempt: string, error: unknown) => void;
}

/** The signals that started attempts, by version, as far as the batch has read them. */
export type StartingSignals = ReadonlyMap<number, ReceivedSignal>;

/** The parts of an assignment besides its instance. */
interface Needs {
  readonly inputs: Pick<AttemptAssignment, "inputs" | "large">;
  readonly resumePoint: AttemptAssignment["resumePoint"];
  readonly signals: StartingSignals;
}

export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #outputs = new OutputCache(32 * 1024 * 1024);
  readonly #waiting = new Map<Executor, number>();
  /** Ended waits by attempt. Bounded: not every ended wait is followed by an attempt, and not every attempt is dispatched. */
  readonly #waits = new OutputCache(4 * 1024 * 1024);

  constructor(options: DispatcherOptions) {
    this.#options = options;
  }

  /** Caches an output that was just stored, for downstream tasks. */
  remember(output: { runId: number; taskId: string; mapIndex: number; value: Known }): void {
    const key = outputKey(output.runId, output.taskId, output.mapIndex);
    this.#outputs.set(key, output.value, JSON.stringify(output.value).length);
  }

  /** Caches a wait whose trigger just fired, for the attempt that resumes from it. */
  cacheWait({ attempt, method, kwargs, outcome }: ResumableWait): void {
    const wait = { method, kwargs, outcome };
    this.#waits.set(attempt, wait, JSON.stringify(wait).length);
  }

  forget(runId: number, taskId: string, mapIndex: number): void {
    this.#outputs.delete(outputKey(runId, taskId, mapIndex));
  }

  /** The run has ended or was reloaded: its cached outputs may be outdated. */
  forgetRun(actor: RunActor): void {
    for (const { node, mapIndex } of actor.model.instances()) this.forget(actor.id, node.id, mapIndex);
  }

  /** Submits instances whose inputs are cached at once, the others after reading from the database. */
  dispatch(admitted: readonly Admitted[], signals: StartingSignals): void {
    const later: Admitted[] = [];
    const now = new Map<Executor, AttemptAssignment[]>();
    for (const each of admitted) {
      const inputs = this.#inputs(each, null);
      const resumePoint = this.#resumePoint(each, null);
      if (inputs === null || resumePoint === undefined) later.push(each);
      else push(now, each.executor, this.#assignment(each, { inputs, resumePoint, signals }));
    }
    for (const [executor, assignments] of now) executor.submit(assignments);
    if (later.length > 0) void this.#dispatchLater(later, signals);
  }

  /** The number of attempts that wait here and are not submitted yet. */
  waiting(executor: Executor): number {
    return this.#waiting.get(executor) ?? 0;
  }

  async #dispatchLater(admitted: readonly Admitted[], signals: StartingSignals): Promise<void> {
    for (const { executor } of admitted) this.#waiting.set(executor, this.waiting(executor) + 1);
    try {
      await this.#submitWhenReady(admitted, signals);
    } finally {
      for (const { executor } of admitted) this.#waiting.set(executor, this.waiting(executor) - 1);
    }
  }

  async #submitWhenReady(admitted: readonly Admitted[], signals: StartingSignals): Promise<void> {
    let wanted = admitted;
    const { epoch } = this.#options.lease;
    for (let wait = 50; ; wait = Math.min(wait * 2, 1_000)) {
      wanted = wanted.filter((each) => this.#isWanted(each, epoch));
      if (wanted.length === 0) return;
      try {
        return await this.#submit(wanted, epoch, signals);
      } catch (error) {
        this.#options.logger.warn("dispatch failed, retrying", { error: messageOf(error) });
        if (!isTransient(error)) {
          for (const { attempt } of wanted) this.#options.failed(attempt, error);
          return;
        }
        await sleep(wait);
      }
    }
  }

  async #submit(wanted: readonly Admitted[], epoch: number, signals: StartingSignals): Promise<void> {
    const { database } = this.#options;
    const needed = wanted.flatMap((each) => this.#missing(each));
    const stored = await this.#read(needed);
    const resumed = wanted.flatMap(({ instance }) => instance.resumedAttempt ?? []);
    const waits = new Map((await resumableWaits(database, resumed)).map((wait) => [wait.attempt, wait]));
    for (const each of wanted) {
      const inputs = this.#inputs(each, stored) ?? (await this.#measured(each, stored));
      if (!this.#isWanted(each, epoch)) continue;
      const resumePoint = this.#resumePoint(each, waits) ?? null;
      each.executor.submit([this.#assignment(each, { inputs, resumePoint, signals })]);
    }
  }

  /** undefined: the wait to resume from is neither cached nor in `stored`. */
  #resumePoint(
    { instance: { resumedAttempt } }: Admitted,
    stored: ReadonlyMap<string, ResumableWait> | null,
  ): AttemptAssignment["resumePoint"] | undefined {
    if (resumedAttempt === null) return null;
    const wait = this.#waits.get(resumedAttempt) ?? stored?.get(resumedAttempt);
    if (!wait) return undefined;
    const { method, kwargs, outcome } = wait as unknown as ResumableWait;
    const payload = (outcome as { readonly payload?: Json } | null)?.payload ?? null;
    return method === null ? null : { method, kwargs, event: payload };
  }

  #isWanted({ attempt }: Admitted, epoch: number): boolean {
    const { lease } = this.#options;
    const isWanted = epoch === lease.epoch && lease.isTrusted() && this.#options.isWanted(attempt);
    if (!isWanted) this.#options.dropped(attempt);
    return isWanted;
  }

  /** Reads outputs. The list of a map is cached, because the other instances of the map read it too. */
  async #read(
    needed: readonly { readonly runId: number; readonly taskId: string; readonly isShared: boolean }[],
  ): Promise<Map<string, Known>> {
    const shared = new Set(
      needed.flatMap(({ isShared, runId, taskId }) => (isShared ? `${runId}/${taskId}` : [])),
    );
    const stored = new Map<string, Known>();
    for (const row of await loadOutputs(this.#options.database, needed)) {
      const { dag_run_id: runId, map_index: mapIndex, task_id: taskId, value } = row;
      stored.set(outputKey(runId, taskId, mapIndex), value);
      if (shared.has(`${runId}/${taskId}`)) this.remember({ runId, taskId, mapIndex, value });
    }
    return stored;
  }

  /** A cached output; undefined: not cached. */
  recall(runId: number, taskId: string, mapIndex: number): { readonly value: Known | undefined } | undefined {
    const key = outputKey(runId, taskId, mapIndex);
    return this.#outputs.has(key) ? { value: this.#outputs.get(key) } : undefined;
  }

  #missing({ actor, instance }: Admitted) {
    const reader = this.#reader(actor, null);
    for (const source of Object.values(instance.node.manifest.inputs)) reader.input(source, instance);
    const isShared = instance.node.scope !== null;
    return [...reader.missing].map((taskId) => ({ runId: actor.id, taskId, isShared }));
  }

  #reader(actor: RunActor, stored: ReadonlyMap<string, Known> | null): InputReader {
    const atHand: OutputLookup = (taskId, mapIndex) => {
      const found = this.recall(actor.id, taskId, mapIndex);
      return found ?? (stored ? { value: stored.get(outputKey(actor.id, taskId, mapIndex)) } : undefined);
    };
    return new InputReader(actor.model, atHand, (value) => this.#options.lengths.get(value));
  }

  /** Only for a cross product of lists inside large ones: the item of an instance depends on their lengths. */
  async #measured(admitted: Admitted, stored: ReadonlyMap<string, Known>): Promise<Needs["inputs"]> {
    const { actor, instance } = admitted;
    const reader = this.#reader(actor, stored);
    for (const source of Object.values(instance.node.manifest.inputs)) reader.input(source, instance);
    await this.#options.lengths.measure(reader.unmeasured);
    return this.#inputs(admitted, stored) ?? { inputs: {} };
  }

  /** null: an output is neither cached nor in `stored`; `stored` null: the database was not queried yet. */
  #inputs({ actor, instance }: Admitted, stored: ReadonlyMap<string, Known> | null): Needs["inputs"] | null {
    const { inputs: sources, rule } = instance.node.manifest;
    const inputs: Record<string, InputStanding> = {};
    const reader = this.#reader(actor, stored);
    for (const [name, source] of Object.entries(sources)) {
      const { each, ...input } = reader.input(source, instance);
      inputs[name] = each && rule !== "allSuccess" ? { ...input, each } : input;
    }
    if (reader.isVoid) return null;
    return reader.hasLarge ? largeApart(inputs) : { inputs: inputs as AttemptAssignment["inputs"] };
  }

  #assignment(admitted: Admitted, needs: Needs): AttemptAssignment {
    const { actor, instance, attempt } = admitted;
    // Cached for one attempt. If that attempt is lost, the next one reads the wait from the database.
    if (instance.resumedAttempt !== null) this.#waits.delete(instance.resumedAttempt);
    const elapsedMs =
      instance.startedAt === null ? 0 : Math.max(0, this.#options.lease.now() - instance.startedAt);
    const { manifest } = instance.node;
    return {
      kind: "attempt",
      id: attempt,
      dagRunId: actor.id,
      taskId: manifest.taskId,
      mapIndex: instance.mapIndex,
      tryNumber: instance.tryNumber,
      maxTries: instance.maxTries,
      bundleHash: actor.version.bundleHash,
      queue: manifest.queue,
      ...(manifest.executorConfig && { config: manifest.executorConfig }),
      priority: instance.node.weight,
      resumePoint: needs.resumePoint,
      elapsedMs,
      ...needs.inputs,
      run: actor.facts,
      conf: actor.run.conf,
      ...driven(actor, instance, needs.signals),
      // The remaining time: waits and reschedules of the same try count.
      timeoutMs: manifest.timeoutMs === null ? null : Math.max(1, manifest.timeoutMs - elapsedMs),
      memoryMb: manifest.memoryMb,
      isolation: manifest.isolation,
      logKey: [...logPlace(actor, instance), `${instance.tryNumber}-${attempt}.log`].join("/"),
    };
  }
}

/** Inputs with null in place of large values, and these values with their places. */
function largeApart(inputs: Readonly<Record<string, InputStanding>>): Needs["inputs"] {
  const large: LargePlace[] = [];
  const settled = ({ each, state, value }: InputStanding, at: LargePlace["at"]): SettledInput => ({
    state,
    value: value === undefined ? undefined : apart(value, [...at, "value"], large),
    ...(each && { each: each.map((one, index) => settled(one, [...at, "each", index])) }),
  });
  const entries = Object.entries(inputs).map(([name, input]) => [
    name,
    settled(input, ["call", "inputs", name]),
  ]);
  return { inputs: Object.fromEntries(entries), large };
}

/** The fields of a signal-driven or streaming task; none for other tasks. */
function driven(
  { model }: RunActor,
  { node: { id, manifest } }: Instance,
  signals: StartingSignals,
): Pick<AttemptAssignment, "startSignals" | "signals" | "streamGraceMs"> {
  if (model.drive === null) return {};
  const versions = model.drive.startSignals(id);
  const read = versions.flatMap((version) => signals.get(version) ?? []);
  return {
    ...(versions.length > 0 && { startSignals: versions }),
    // All or none: the missing ones are large or deleted, which is decided when the process requests them.
    ...(read.length > 0 && read.length === versions.length && { signals: read }),
    ...(isStreaming(manifest) && { streamGraceMs: manifest.graceMs ?? GRACE_MS }),
  };
}

/** Ids are restricted to a safe alphabet when a DAG is defined, so they can be folder names. */
function logPlace(actor: RunActor, instance: Instance): string[] {
  return [actor.run.dag_id, String(actor.id), instance.node.id, String(instance.mapIndex)];
}

function push<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

export function undispatchable(reason: unknown): AttemptOutcome {
  const error: ErrorFacts = {
    name: "DispatchError",
    message: messageOf(reason),
    stack: null,
    code: "TASK_NOT_DISPATCHED",
  };
  return { kind: "failed", error, retry: true };
}
