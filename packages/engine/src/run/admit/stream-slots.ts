/**
 * Streaming tasks take the streaming slots of an executor first, then ordinary ones. The kind of slot that a ready
 * streaming task waits for is decided again before each choice, because an entry of the ready queue has one limit.
 */
import type { Executor } from "../../execute/contract.ts";
import { type Instance, isStreaming, type ReadyQueue } from "../../model/index.ts";
import type { ActiveAttempts } from "../batch/active-attempts.ts";
import type { Ready } from "./ready-task.ts";

const ordinary = ({ name }: Executor) => `executor:${name}`;
const own = ({ name }: Executor) => `streams:${name}`;

/** Ready instances by run. */
type Waiting = ReadonlyMap<number, { readonly ready: ReadonlyMap<Instance, Ready> }>;

interface Chosen {
  readonly executor: Executor;
  readonly instance: Instance;
}

function streamsOf(executor: Executor, chosen: readonly Chosen[]): number {
  const isOne = (each: Chosen) => each.executor === executor && isStreaming(each.instance.node.manifest);
  return chosen.filter(isOne).length;
}

export class StreamSlots {
  readonly #queue: ReadyQueue<Ready>;
  readonly #activeAttempts: ActiveAttempts;
  readonly #ready = new Set<Ready>();

  constructor(queue: ReadyQueue<Ready>, activeAttempts: ActiveAttempts) {
    this.#queue = queue;
    this.#activeAttempts = activeAttempts;
  }

  /** An instance has become ready. */
  add(ready: Ready): void {
    const { executor, instance } = ready.own ?? {};
    if (executor?.streamingSlots && instance && isStreaming(instance.node.manifest)) this.#ready.add(ready);
  }

  /**
   * Before a choice: assigns the free streaming slots to the first waiting tasks. Returns the capacity of each limit.
   * @param chosen Instances that were chosen before and are not active yet.
   */
  assign(waiting: Waiting, chosen: readonly Chosen[]): Map<string, number> {
    const capacities = new Map<string, number>();
    const left = new Map<Executor, number>();
    for (const ready of this.#ready) {
      const isReady = ready.own && waiting.get(ready.own.actor.id)?.ready.get(ready.own.instance) === ready;
      if (!ready.own || !isReady) {
        this.#ready.delete(ready);
        continue;
      }
      const { executor } = ready.own;
      const slots = executor.streamingSlots ?? 0;
      const free =
        left.get(executor) ?? slots - this.#activeAttempts.streams(executor) - streamsOf(executor, chosen);
      if (!capacities.has(own(executor))) capacities.set(own(executor), Math.max(0, free));
      left.set(executor, free - 1);
      const [from, to] = free > 0 ? [ordinary, own] : [own, ordinary];
      this.#move(ready, from(executor), to(executor));
    }
    return capacities;
  }

  #move(ready: Ready, from: string, to: string): void {
    if (!ready.limits.includes(from)) return;
    const isInQueue = this.#queue.remove(ready);
    ready.limits = ready.limits.map((limit) => (limit === from ? to : limit));
    if (isInQueue) this.#queue.add(ready);
  }
}
