/**
 * What follows from a change: judges what is on the agenda in topological order, so that whatever ends by it adds only
 * later ones; then groups that have nothing left to do, which others may see now; then what the run's own rules make of it.
 */
import type { Branches } from "../graph/branches.ts";
import type { Mapping } from "../map/mapping.ts";
import { type Instance, isHeld, isUnexpanded } from "./instance.ts";
import type { InstanceTable } from "./instance-table.ts";
import type { Moves } from "./moves.ts";
import type { Orders } from "./orders.ts";
import type { TaskState } from "./states.ts";

interface SettlingParts {
  readonly table: InstanceTable;
  readonly moves: Moves;
  readonly branches: Branches;
  readonly mapping: Mapping | null;
  readonly orders: Orders | null;
  readonly end: (instance: Instance, state: TaskState, reason: string) => void;
}

export class Settling {
  /** How many instances were looked at so far: the measure of work. */
  looks = 0;
  readonly #parts: SettlingParts;
  readonly #gated: Instance[] = [];

  constructor(parts: SettlingParts) {
    this.#parts = parts;
  }

  /** Held for the past of the DAG since the last call. */
  takeGated(): Instance[] {
    return this.#gated.splice(0);
  }

  settle(): void {
    const { mapping, orders, table } = this.#parts;
    do {
      mapping?.settle();
      for (let due = table.nextOnAgenda(); due; due = table.nextOnAgenda()) {
        const { slot, instances } = due;
        for (const instance of instances) {
          if (slot.idle === 0) break;
          if (instance.state !== "none" || isHeld(instance) || instance.position < 0) continue;
          this.looks++;
          // Nothing distinguishes the others from this one.
          if (!this.#decide(instance) && slot.standing.isShared && !slot.guard) break;
        }
      }
    } while (table.hasAgenda || this.#endGroups() || orders?.followUp());
  }

  #endGroups(): boolean {
    const { branches, moves, table } = this.#parts;
    const ended = table.groups?.settle(moves.now) ?? [];
    // What branches in them have ruled out outside of them.
    for (const group of ended) branches.repeatOf(table.groups!.instancesOf(group));
    return ended.length > 0;
  }

  /** false: it has to wait. */
  #decide(instance: Instance): boolean {
    const { end, mapping, moves, orders, table } = this.#parts;
    if (isUnexpanded(instance) && !mapping!.isJudged(instance)) {
      mapping!.leaveToMap(instance);
      return true;
    }
    const verdict = table.verdictOn(instance);
    const { manifest, gated } = instance.node;
    if (verdict === "wait") return false;
    if (verdict !== "run") {
      orders?.endStart(instance);
      end(instance, verdict, `trigger rule ${manifest.rule}`);
    } else if (isUnexpanded(instance)) mapping!.leaveToMap(instance);
    else if (gated && instance.gate !== "open") {
      table.hold(instance, "waiting");
      this.#gated.push(instance);
    } else if (orders?.letBegin(instance) !== false) moves.schedule(instance, "newTry");
    return true;
  }
}
