/** The entries of a scheduler's ready queue. */
import type { Executor } from "../../execute/contract.ts";
import type { Candidate, Instance } from "../../model/index.ts";
import type { RunActor } from "../loaded/run-actor.ts";

/** A ready instance, or a placeholder for a waiting task of another scheduler, which takes slots and is never started. */
export interface Ready extends Candidate {
  /** Changed only while the entry is not in the queue. */
  limits: readonly string[];
  readonly own: OwnReady | null;
}

export interface OwnReady {
  readonly actor: RunActor;
  readonly instance: Instance;
  readonly executor: Executor;
}

/** The date that decides the order of runs. */
export function dateOf({ run }: RunActor): number {
  return (run.logical_date ?? run.run_after).getTime();
}

export function beginsByWaiting({ node, resumedAttempt }: Instance): boolean {
  return resumedAttempt === null && Boolean(node.manifest.startTrigger);
}

/** Whether its task has a limit per run. */
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
