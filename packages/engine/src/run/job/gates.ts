/**
 * Instances whose rule is satisfied but which wait for the run before theirs. Asked again whenever a run of their DAG
 * moved in this process, when another process says that a run or such a task ended, and at every heartbeat: one query for all.
 */
import { type Instance, isFinished } from "../../model/index.ts";
import type { Database } from "../../store/database/database.ts";
import { openPast } from "../../store/plan/past.ts";
import type { RunBatch } from "../../store/task/run-batch.ts";
import type { RunActor } from "../loaded/run-actor.ts";

interface Waiting {
  readonly actor: RunActor;
  readonly instance: Instance;
}

export class Gates {
  readonly #waiting = new Map<Instance, Waiting>();
  #isDue = false;

  get size(): number {
    return this.#waiting.size;
  }

  #add(actor: RunActor, instances: readonly Instance[]): void {
    for (const instance of instances) this.#waiting.set(instance, { actor, instance });
    if (instances.length > 0) this.#isDue = true;
  }

  drop(actor: RunActor): void {
    for (const [instance, waiting] of this.#waiting)
      if (waiting.actor === actor) this.#waiting.delete(instance);
  }

  /** Something moved that a gate may wait for. */
  ask(): void {
    if (this.#waiting.size > 0) this.#isDue = true;
  }

  get isDue(): boolean {
    return this.#isDue;
  }

  /** Lets those of these runs and of earlier ones go on that may; adds the runs they belong to. */
  async open(database: Database, touched: Set<RunActor>, now: number): Promise<void> {
    for (const actor of touched) this.#add(actor, actor.model.takeGated());
    if (!this.#isDue) return;
    for (const actor of await this.#open(database, now)) touched.add(actor);
  }

  async #open(database: Database, now: number): Promise<RunActor[]> {
    this.#isDue = false;
    const waiting = [...this.#waiting.values()];
    if (waiting.length === 0) return [];
    try {
      // One question for all instances of a mapped task.
      const tasks = [
        ...Map.groupBy(waiting, ({ actor, instance }) => `${actor.id} ${instance.node.id}`).values(),
      ];
      const open = await openPast(
        database,
        tasks.map(([first]) => question(first!)),
      );
      const opened = tasks.flatMap((each, place) => (open.has(place) ? each : []));
      for (const { actor, instance } of opened) {
        this.#waiting.delete(instance);
        const key = { taskId: instance.node.id, mapIndex: instance.mapIndex };
        actor.model.apply({ type: "gateOpened", ...key }, now);
      }
      return opened.map(({ actor }) => actor);
    } catch (error) {
      this.#isDue = true;
      throw error;
    }
  }
}

function question({ actor, instance }: Waiting) {
  const { node } = instance;
  const { nodes } = actor.model.graph;
  const downstream = node.manifest.waitForDownstream
    ? node.downstream.map((index) => nodes[index]?.id ?? "")
    : [];
  return { runId: actor.id, taskIds: [node.id, ...downstream] };
}

/** Whether tasks have ended that the next date may wait for: its run may be another job's. */
export function endsPast(batch: RunBatch, actors: ReadonlyMap<number, RunActor>): boolean {
  return batch.instances.some(
    ({ instance, runId }) => isFinished(instance.state) && actors.get(runId)?.version.isGated,
  );
}
