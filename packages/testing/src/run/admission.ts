/** Decides which tasks may start: limits of the run and of each task apply, pools are unlimited. */
import { type Candidate, type Instance, isStreaming, ReadyQueue } from "@tradewind/engine/model";
import type { DagManifest } from "@tradewind/sdk/manifest";
import { DagTestError } from "../errors.ts";
import type { RunOptions } from "../options.ts";
import type { Attempts } from "./attempts.ts";

interface Ready extends Candidate {
  readonly instance: Instance;
}

/** Not a valid task id. */
const LIMIT = "";

export class Admission {
  readonly #queue = new ReadyQueue<Ready>();
  readonly #slots: number;
  /** The DAG's own limit counts streaming tasks; the limit of the test does not, because they would leave no room. */
  readonly #countsStreams: boolean;

  /** The limits of tasks with `maxActivePerRun`, by id. */
  readonly #limitedTasks: ReadonlyMap<string, number>;

  constructor({ concurrency }: RunOptions, { maxActiveTasks, tasks }: DagManifest) {
    if (concurrency !== undefined && !(concurrency >= 1))
      throw new DagTestError("TW_TEST_BAD_OPTION", `concurrency must be 1 or more, got ${concurrency}`);
    this.#slots = concurrency ?? maxActiveTasks;
    this.#countsStreams = concurrency === undefined;
    this.#limitedTasks = new Map(
      tasks.flatMap(({ maxActivePerRun, taskId }) =>
        maxActivePerRun === null ? [] : [[taskId, maxActivePerRun]],
      ),
    );
  }

  add(instance: Instance): void {
    const { node, mapIndex } = instance;
    const isCounted = this.#countsStreams || !isStreaming(node.manifest);
    const limits = isCounted ? [LIMIT] : [];
    if (node.manifest.maxActivePerRun !== null) limits.push(node.id);
    this.#queue.add({
      instance,
      weight: node.weight,
      mapIndex,
      logicalDate: null,
      pool: "",
      slots: 0,
      limits,
    });
  }

  /** The tasks that may start now, the heaviest first. */
  admit(attempts: Attempts): Instance[] {
    for (const limit of [LIMIT, ...this.#limitedTasks.keys()]) this.#queue.release(limit);
    const occupied = this.#countsStreams ? attempts.size : attempts.batchSize;
    const picks = this.#queue.admit((name, kind) => {
      if (kind === "pool") return { slots: -1, occupied: 0 };
      const slots = this.#limitedTasks.get(name);
      return slots === undefined
        ? { slots: this.#slots, occupied }
        : { slots, occupied: attempts.countOf(name) };
    });
    return picks.map(({ instance }) => instance);
  }
}
