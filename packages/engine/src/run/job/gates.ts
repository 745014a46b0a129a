/**
 * Instances whose trigger rule is satisfied and that wait for the previous run. One query checks all of them when a run of
 * their DAG changed in this process, when another process reports the end of a run or such a task, and at every heartbeat.
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

  /** A state that a gate may wait for has changed. */
  requestRead(): void {
    if (this.#waiting.size > 0) this.#isDue = true;
  }

  get isDue(): boolean {
    return this.#isDue;
  }

  /** Opens the gates whose earlier runs have ended; adds their runs to `touched`. */
  async open(database: Database, touched: Set<RunActor>, now: number): Promise<void> {
    for (const actor of touched) this.#add(actor, actor.model.drainGated());
    if (!this.#isDue) return;
    for (const actor of await this.#open(database, now)) touched.add(actor);
  }

  async #open(database: Database, now: number): Promise<RunActor[]> {
    this.#isDue = false;
    const waiting = [...this.#waiting.values()];
    if (waiting.length === 0) return [];
    try {
      // One row for all instances of a mapped task.
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

/** Whether tasks have ended that a run of the next date may wait for, possibly at another job. */
export function endsPast(batch: RunBatch, actors: ReadonlyMap<number, RunActor>): boolean {
  return batch.instances.some(
    ({ instance, runId }) => isFinished(instance.state) && actors.get(runId)?.version.isGated,
  );
}
