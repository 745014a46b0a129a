/** What stands in the ready queue of a scheduler. */
import type { Executor } from "../../execute/contract.ts";
import type { Candidate, Instance } from "../../model/index.ts";
import type { RunActor } from "../loaded/run-actor.ts";

/** A ready instance, or a stand-in for a task that another scheduler holds back: it takes room and goes nowhere. */
export interface Ready extends Candidate {
  /** Changed only while it is outside the queue. */
  limits: readonly string[];
  readonly own: OwnReady | null;
}

export interface OwnReady {
  readonly actor: RunActor;
  readonly instance: Instance;
  readonly executor: Executor;
}

/** What its turn is reckoned by. */
export function dateOf({ run }: RunActor): number {
  return (run.logical_date ?? run.run_after).getTime();
}

export function beginsByWaiting({ node, resumedAttempt }: Instance): boolean {
  return resumedAttempt === null && Boolean(node.manifest.startTrigger);
}

/** Whether its task has a limit in each run. */
export function isLimited({ node }: Instance): boolean {
  return node.manifest.maxActivePerRun !== null;
}

/** The name of that limit. */
export function taskLimit({ id }: RunActor, { node }: Instance): string {
  return `task:${id}:${node.index}`;
}

export function remembered<V>(map: Map<string, V>, name: string, value: V | undefined): V | undefined {
  if (value !== undefined) map.set(name, value);
  return value;
}
