/**
 * Computes the consequences of a change: evaluates the agenda in topological order, so that an end adds only later tasks;
 * then groups whose tasks have all ended; then the run's own signal rules.
 */
import type { Branches } from "../graph/branches.ts";
import type { Mapping } from "../map/mapping.ts";
import type { Commands } from "./commands.ts";
import { type Instance, isHeld, isUnexpanded } from "./instance.ts";
import type { InstanceTable } from "./instance-table.ts";
import type { Moves } from "./moves.ts";
import type { TaskState } from "./states.ts";

interface EvaluationParts {
  readonly table: InstanceTable;
  readonly moves: Moves;
  readonly branches: Branches;
  readonly mapping: Mapping | null;
  readonly commands: Commands | null;
  readonly end: (instance: Instance, state: TaskState, reason: string) => void;
}

export class Evaluation {
  /** The number of evaluated instances so far: the measure of work. */
  evaluations = 0;
  readonly #parts: EvaluationParts;
  readonly #gated: Instance[] = [];

  constructor(parts: EvaluationParts) {
    this.#parts = parts;
  }

  /** Instances held for earlier runs of the DAG since the last call. */
  drainGated(): Instance[] {
    return this.#gated.splice(0);
  }

  evaluate(): void {
    const { mapping, commands: orders, table } = this.#parts;
    do {
      mapping?.evaluate();
      for (let due = table.nextOnAgenda(); due; due = table.nextOnAgenda()) {
        const { slot, instances } = due;
        for (const instance of instances) {
          if (slot.idle === 0) break;
          if (instance.state !== "pending" || isHeld(instance) || instance.position < 0) continue;
          this.evaluations++;
          // The other instances would get the same verdict.
          if (!this.#decide(instance) && slot.standing.isShared && !slot.guard) break;
        }
      }
    } while (table.hasAgenda || this.#endGroups() || orders?.followUp());
  }

  #endGroups(): boolean {
    const { branches, moves, table } = this.#parts;
    const ended = table.groups?.evaluate(moves.now) ?? [];
    // Now the branches inside these groups skip tasks outside of them.
    for (const group of ended) branches.repeatOf(table.groups!.instancesOf(group));
    return ended.length > 0;
  }

  /** false: the instance has to wait. */
  #decide(instance: Instance): boolean {
    const { end, mapping, moves, commands: orders, table } = this.#parts;
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
