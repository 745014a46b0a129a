/**
 * Maps of the runs of one scheduler: finds out how long the lists are that they run over, as soon as they are known,
 * and makes the instances of long ones piece by piece, so that no run waits for another's 100,000.
 */
import type { Json } from "@tradewind/sdk/manifest";
import { expansionOf, InputReader, type OutputLookup, type ScopePlace } from "../model/index.ts";
import type { Database } from "../store/database.ts";
import type { OutputWrite } from "../store/run-batch.ts";
import { loadOutputs, OUTPUT_KEY } from "../store/run-load.ts";
import { outputKey } from "./output-cache.ts";
import type { RunActor } from "./run-actor.ts";

/** Instances that one turn makes at most. */
const PIECE = 2_000;

/** An output that this process has at hand. */
export type Recall = (runId: number, taskId: string, mapIndex: number) => ReturnType<OutputLookup>;

export interface ExpandingOptions {
  readonly database: Database;
  readonly recall: Recall;
  /** There is more to make. */
  readonly wake: () => void;
  readonly maxMapLength?: number | undefined;
}

export class Expanding {
  readonly #options: ExpandingOptions;
  readonly #growing = new Set<RunActor>();

  constructor(options: ExpandingOptions) {
    this.#options = options;
  }

  drop(actor: RunActor): void {
    this.#growing.delete(actor);
  }

  /** `outputs`: what the batch at hand is about to store. Adds the runs that have more to make. */
  async expand(touched: Set<RunActor>, outputs: readonly OutputWrite[], now: number): Promise<void> {
    const fresh = freshOutputs(outputs);
    for (const actor of touched) await this.#answerAll(actor, fresh, now);
    let left = PIECE;
    for (const actor of this.#growing) {
      if (left <= 0) break;
      const made = actor.model.make(left, now);
      if (made === 0) continue;
      left -= made;
      touched.add(actor);
      this.#growing.delete(actor);
      // Among what was made may be maps of their own.
      await this.#answerAll(actor, fresh, now);
    }
    if (left < PIECE && this.#growing.size > 0) this.#options.wake();
  }

  async #answerAll(actor: RunActor, fresh: ReadonlyMap<string, Json>, now: number): Promise<void> {
    for (const place of actor.model.takeExpandable()) await this.#answer(actor, place, fresh, now);
    if (actor.model.isGrowing) this.#growing.add(actor);
  }

  async #answer(
    actor: RunActor,
    place: ScopePlace,
    fresh: ReadonlyMap<string, Json>,
    now: number,
  ): Promise<void> {
    const atHand: OutputLookup = (taskId, mapIndex) => {
      const key = outputKey(actor.id, taskId, mapIndex);
      return fresh.has(key) ? { value: fresh.get(key) } : this.#options.recall(actor.id, taskId, mapIndex);
    };
    const { maxMapLength } = this.#options;
    const reader = new InputReader(actor.model, atHand);
    const event = expansionOf(reader, place, maxMapLength);
    if (reader.missing.size === 0) {
      actor.model.apply(event, now);
      return;
    }
    const wanted = [...reader.missing].map((taskId) => ({ runId: actor.id, taskId }));
    const stored = new Map<string, Json>();
    for (const row of await loadOutputs(this.#options.database, wanted))
      stored.set(outputKey(actor.id, row.task_id, row.map_index), row.value);
    const all: OutputLookup = (taskId, mapIndex) =>
      atHand(taskId, mapIndex) ?? { value: stored.get(outputKey(actor.id, taskId, mapIndex)) };
    actor.model.apply(expansionOf(new InputReader(actor.model, all), place, maxMapLength), now);
  }
}

function freshOutputs(outputs: readonly OutputWrite[]): Map<string, Json> {
  const fresh = new Map<string, Json>();
  for (const { key, mapIndex, runId, taskId, value } of outputs)
    if (key === OUTPUT_KEY) fresh.set(outputKey(runId, taskId, mapIndex), value);
  return fresh;
}
