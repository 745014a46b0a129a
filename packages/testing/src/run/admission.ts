/** Who may run now. The one limit of a test is how many tasks run at once; pools have room for all. */
import { type Candidate, type Instance, isStreaming, ReadyQueue } from "@tradewind/engine/model";
import type { DagManifest } from "@tradewind/sdk/manifest";
import { DagTestError } from "../errors.ts";
import type { RunOptions } from "../options.ts";
import type { Attempts } from "./attempts.ts";

interface Ready extends Candidate {
  readonly instance: Instance;
}

const LIMIT = "run";

export class Admission {
  readonly #queue = new ReadyQueue<Ready>();
  readonly #slots: number;
  /** The DAG's own limit counts streaming tasks too; the test's does not: they would leave no room. */
  readonly #countsStreams: boolean;

  constructor({ concurrency }: RunOptions, { maxActiveTasks }: DagManifest) {
    if (concurrency !== undefined && !(concurrency >= 1))
      throw new DagTestError("TW_TEST_BAD_OPTION", `concurrency must be 1 or more, got ${concurrency}`);
    this.#slots = concurrency ?? maxActiveTasks;
    this.#countsStreams = concurrency === undefined;
  }

  add(instance: Instance): void {
    const { node, mapIndex } = instance;
    const isCounted = this.#countsStreams || !isStreaming(node.manifest);
    const limits = isCounted ? [LIMIT] : [];
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

  /** Those that there is room for, the heaviest first. */
  take(attempts: Attempts): Instance[] {
    this.#queue.release(LIMIT);
    const occupied = this.#countsStreams ? attempts.size : attempts.batchSize;
    const picks = this.#queue.take((_, kind) =>
      kind === "pool" ? { slots: -1, occupied: 0 } : { slots: this.#slots, occupied },
    );
    return picks.map(({ instance }) => instance);
  }
}
