/**
 * Expands the maps of a scheduler's runs: reads the lengths of their lists as soon as these are stored, and creates the
 * instances of long lists piece by piece, so that no run waits for 100,000 instances of another.
 */
import { setTimeout as sleep } from "node:timers/promises";
import {
  expansionOf,
  InputReader,
  type Instance,
  type Known,
  type LargeValue,
  largeIn,
  nameOf,
  type OutputLookup,
  type ScopePlace,
} from "../../model/index.ts";
import { EngineError, messageOf } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import type { Database } from "../../store/database/database.ts";
import type { OutputWrite } from "../../store/output/run-outputs.ts";
import { loadOutputs, OUTPUT_KEY } from "../../store/run/run-load.ts";
import type { LargeLengths } from "../dispatch/large-lengths.ts";
import { outputKey } from "../dispatch/output-cache.ts";
import { MapNaming, type Unnamed } from "./map-naming.ts";
import type { RunActor } from "./run-actor.ts";

/** Maximum number of instances per turn. */
const PIECE = 2_000;

/** Returns a cached output; undefined: not cached. */
type Recall = (runId: number, taskId: string, mapIndex: number) => ReturnType<OutputLookup>;

export interface ExpandingOptions {
  readonly database: Database;
  readonly recall: Recall;
  readonly lengths: LargeLengths;
  readonly logger: Logger;
  /** More instances have to be created. */
  readonly wake: () => void;
  readonly maxMapLength?: number | undefined;
}

interface Measuring {
  readonly actor: RunActor;
  readonly place: ScopePlace;
  /** null: not yet. */
  result: { readonly failure: unknown } | null;
}

export class Expanding {
  readonly #options: ExpandingOptions;
  readonly #growing = new Set<RunActor>();
  /** Maps over items of large lists, whose lengths are being read. Only these maps wait on the object store. */
  readonly #measuring = new Set<Measuring>();
  readonly #naming: MapNaming;

  constructor(options: ExpandingOptions) {
    this.#options = options;
    this.#naming = new MapNaming(options.lengths.lists, options.wake);
  }

  drop(actor: RunActor): void {
    this.#growing.delete(actor);
    this.#naming.drop(actor);
    for (const each of this.#measuring) if (each.actor === actor) this.#measuring.delete(each);
  }

  /** `outputs`: the outputs of the current batch. Adds the runs with more instances to create to `touched`. */
  async expand(touched: Set<RunActor>, outputs: readonly OutputWrite[], now: number): Promise<void> {
    const fresh = freshOutputs(outputs);
    if (this.#measuring.size > 0) await this.#answerMeasured(touched, fresh, now);
    this.#naming.applyNames(touched);
    for (const actor of touched) await this.#answerAll(actor, fresh, now);
    let left = PIECE;
    for (const actor of this.#growing) {
      if (left <= 0) break;
      const made = actor.model.make(left, now);
      if (made === 0) continue;
      left -= made;
      touched.add(actor);
      this.#growing.delete(actor);
      // The new instances may be inside of inner maps.
      await this.#answerAll(actor, fresh, now);
    }
    if (left < PIECE && this.#growing.size > 0) this.#options.wake();
  }

  async #answerAll(actor: RunActor, fresh: ReadonlyMap<string, Known>, now: number): Promise<void> {
    for (const place of actor.model.drainExpandable()) await this.#answer(actor, place, fresh, now);
    const unlabelled = actor.model.drainUnlabelled();
    if (unlabelled.length > 0) await this.#label(actor, unlabelled, fresh);
    if (actor.model.isGrowing) this.#growing.add(actor);
  }

  async #answer(
    actor: RunActor,
    place: ScopePlace,
    fresh: ReadonlyMap<string, Known>,
    now: number,
  ): Promise<void> {
    const { maxMapLength } = this.#options;
    let unmeasured: readonly LargeValue[] = [];
    const event = await this.#read(actor, fresh, (reader) => {
      const answer = expansionOf(reader, place, maxMapLength);
      unmeasured = reader.unmeasured;
      return answer;
    });
    if (unmeasured.length > 0) this.#measure({ actor, place, result: null }, unmeasured);
    else actor.model.apply(event, now);
  }

  /** Outside of the loop, because a store may be slow. The run does not end before that. */
  #measure(measuring: Measuring, values: readonly LargeValue[]): void {
    this.#measuring.add(measuring);
    measuring.actor.unmeasured++;
    void this.#lengthsOf(measuring, values).then((result) => {
      measuring.result = result;
      this.#options.wake();
    });
  }

  /** Retries while the store is unavailable, as long as this job has the run. */
  async #lengthsOf(measuring: Measuring, values: readonly LargeValue[]): Promise<{ failure: unknown }> {
    for (let waitMs = 1_000; ; waitMs = Math.min(2 * waitMs, 30_000)) {
      try {
        await this.#options.lengths.measure(values);
        return { failure: null };
      } catch (failure) {
        const isPassing = failure instanceof EngineError && failure.code === "OUTPUT_UNREADABLE";
        if (!isPassing || !this.#measuring.has(measuring)) return { failure };
        this.#options.logger.warn("cannot read a large output of a map, retrying", {
          error: failure.message,
        });
        await sleep(waitMs, undefined, { ref: false });
      }
    }
  }

  async #answerMeasured(
    touched: Set<RunActor>,
    fresh: ReadonlyMap<string, Known>,
    now: number,
  ): Promise<void> {
    for (const measuring of [...this.#measuring]) {
      const { actor, place, result } = measuring;
      if (result === null) continue;
      this.#measuring.delete(measuring);
      actor.unmeasured--;
      touched.add(actor);
      if (result.failure === null) await this.#answer(actor, place, fresh, now);
      else {
        const error = result.failure;
        const code = error instanceof EngineError ? error.code : "OUTPUT_UNREADABLE";
        const key = { mapId: place.scope.id, parent: place.parent };
        actor.model.apply({ type: "unmappable", ...key, reason: `${code}: ${messageOf(error)}` }, now);
      }
    }
  }

  /** In the turn that created them, so that they are stored with their names. Names from large lists follow later. */
  async #label(
    actor: RunActor,
    instances: readonly Instance[],
    fresh: ReadonlyMap<string, Known>,
  ): Promise<void> {
    const unnamed = await this.#read(actor, fresh, (reader) => {
      const found = instances.map((instance) => ({ instance, parts: reader.label(instance) }));
      return reader.unmeasured.length > 0 ? [] : found;
    });
    const large: Unnamed[] = [];
    for (const each of unnamed) {
      if (largeIn(each.parts).length > 0) large.push(each);
      else actor.model.label(each.instance, nameOf(each.parts));
    }
    if (large.length > 0) this.#naming.begin(actor, large);
  }

  /** Reads cached outputs; then again with those that were missing. */
  async #read<T>(
    actor: RunActor,
    fresh: ReadonlyMap<string, Known>,
    read: (reader: InputReader) => T,
  ): Promise<T> {
    const atHand: OutputLookup = (taskId, mapIndex) => {
      const key = outputKey(actor.id, taskId, mapIndex);
      return fresh.has(key) ? { value: fresh.get(key) } : this.#options.recall(actor.id, taskId, mapIndex);
    };
    const { lengths } = this.#options;
    const lengthOf = (value: LargeValue) => lengths.get(value);
    const reader = new InputReader(actor.model, atHand, lengthOf);
    const answer = read(reader);
    if (reader.missing.size === 0) return answer;
    const wanted = [...reader.missing].map((taskId) => ({ runId: actor.id, taskId }));
    const stored = new Map<string, Known>();
    for (const row of await loadOutputs(this.#options.database, wanted))
      stored.set(outputKey(actor.id, row.task_id, row.map_index), row.value);
    const all: OutputLookup = (taskId, mapIndex) =>
      atHand(taskId, mapIndex) ?? { value: stored.get(outputKey(actor.id, taskId, mapIndex)) };
    return read(new InputReader(actor.model, all, lengthOf));
  }
}

function freshOutputs(outputs: readonly OutputWrite[]): Map<string, Known> {
  const fresh = new Map<string, Known>();
  for (const { key, mapIndex, runId, taskId, value } of outputs)
    if (key === OUTPUT_KEY) fresh.set(outputKey(runId, taskId, mapIndex), value);
  return fresh;
}
