/**
 * Counts the active instances of tasks with a limit per run (`maxActivePerRun`). A run is owned by one scheduler, so this
 * count is complete.
 */
import { type Capacity, type Instance, isOccupying } from "../../model/index.ts";
import type { RunActor } from "../loaded/run-actor.ts";
import { isLimited } from "./ready-task.ts";

type Node = Instance["node"];

export class LimitedTasks {
  readonly #occupying = new Map<RunActor, Map<Node, Set<Instance>>>();

  add(actor: RunActor, instance: Instance): void {
    if (!isLimited(instance)) return;
    const ofRun = this.#occupying.get(actor) ?? new Map<Node, Set<Instance>>();
    this.#occupying.set(actor, ofRun);
    const ofTask = ofRun.get(instance.node) ?? new Set<Instance>();
    ofRun.set(instance.node, ofTask.add(instance));
  }

  delete(actor: RunActor, instance: Instance): void {
    this.#occupying.get(actor)?.get(instance.node)?.delete(instance);
  }

  /** Counts the active instances of a run that was just loaded. */
  load(actor: RunActor): void {
    for (const instance of actor.model.instances()) if (isOccupying(instance)) this.add(actor, instance);
  }

  drop(actor: RunActor): void {
    this.#occupying.delete(actor);
  }

  /** The limit of a task in this run and its use; undefined: no limit. */
  capacity(actor: RunActor, node: Node): Capacity | undefined {
    const { maxActivePerRun: slots } = node.manifest;
    if (slots === null) return undefined;
    return { slots, occupied: this.#occupying.get(actor)?.get(node)?.size ?? 0 };
  }
}
