/**
 * Who is under way, lane by lane (same pool, width and limits), and who stands behind them: queued and given to the
 * executor, without slots until one of the lane ends. Exact in this process only; what others must know is stored with
 * each instance (`is_behind`), in the same transaction as the slots of its pool.
 */
import type { Executor } from "../execute/contract.ts";
import { type Capacity, type Instance, isOccupying } from "../model/index.ts";
import type { RunActor } from "./run-actor.ts";

export interface UnderWay {
  readonly actor: RunActor;
  readonly instance: Instance;
  readonly executor: Executor;
  readonly lane: string;
}

interface Lane {
  holding: number;
  /** In the order in which they were queued. */
  readonly behind: Set<UnderWay>;
}

export class Succession {
  readonly #members = new Map<Instance, UnderWay>();
  readonly #lanes = new Map<string, Lane>();

  enter(member: UnderWay): void {
    this.leave(member.instance);
    this.#members.set(member.instance, member);
    let lane = this.#lanes.get(member.lane);
    if (!lane) {
      lane = { holding: 0, behind: new Set() };
      this.#lanes.set(member.lane, lane);
    }
    if (member.instance.isBehind) lane.behind.add(member);
    else lane.holding++;
  }

  /** It is no longer under way. True: it stood behind others, and never had slots. */
  leave(instance: Instance): boolean {
    const member = this.#members.get(instance);
    if (!member) return false;
    this.#members.delete(instance);
    const lane = this.#lanes.get(member.lane)!;
    const stoodBehind = lane.behind.delete(member);
    if (!stoodBehind) lane.holding--;
    if (lane.holding === 0 && lane.behind.size === 0) this.#lanes.delete(member.lane);
    return stoodBehind;
  }

  /** It got slots, or lost them again. */
  stands(instance: Instance): void {
    const member = this.#members.get(instance);
    const lane = member && this.#lanes.get(member.lane);
    if (!lane || lane.behind.has(member) === instance.isBehind) return;
    if (instance.isBehind) {
      lane.behind.add(member);
      lane.holding--;
    } else {
      lane.behind.delete(member);
      lane.holding++;
    }
  }

  /** How many more may stand behind those of this lane, `ahead` behind each. */
  room(name: string, ahead: number): number {
    const lane = this.#lanes.get(name);
    return lane ? lane.holding * ahead - lane.behind.size : 0;
  }

  /** Of each lane, those who stand behind, first come first. */
  *lines(): Iterable<readonly UnderWay[]> {
    for (const { behind } of this.#lanes.values()) if (behind.size > 0) yield [...behind];
  }

  /** The first of each lane in which nobody has slots. */
  *forsaken(): Iterable<UnderWay> {
    for (const { behind, holding } of this.#lanes.values()) {
      const [first] = behind;
      if (holding === 0 && first) yield first;
    }
  }

  /** How many of this run stand behind others. */
  behindIn(actor: RunActor): number {
    let count = 0;
    for (const line of this.lines()) for (const member of line) if (member.actor === actor) count++;
    return count;
  }

  /**
   * How full the limit of a task in this run is; undefined: it has none. A run is in the hands of one scheduler: what is
   * under way here is all of it.
   */
  capacity(actor: RunActor, node: Instance["node"]): Capacity | undefined {
    const { maxActivePerRun: slots } = node.manifest;
    if (slots === null) return undefined;
    let occupied = 0;
    for (const { actor: owner, instance } of this.#members.values())
      if (owner === actor && instance.node === node && isOccupying(instance)) occupied++;
    return { slots, occupied };
  }

  drop(actor: RunActor): void {
    for (const member of this.#members.values()) if (member.actor === actor) this.leave(member.instance);
  }
}
