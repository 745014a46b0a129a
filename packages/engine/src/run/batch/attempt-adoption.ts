/**
 * Adopts the attempts of loaded runs that run on other machines: a former owner has started them, and they continue. Without
 * an assignment, an attempt that is stored as queued or running has no process.
 */
import type { AdoptedAttempt } from "../../execute/contract.ts";
import { isStreaming } from "../../model/index.ts";
import type { Database } from "../../store/database/database.ts";
import {
  deleteAssignments,
  loadAssignments,
  type StoredAssignment,
} from "../../store/execute/assignments.ts";
import type { ExecutorRoom } from "../admit/executor-room.ts";
import type { RunActor } from "../loaded/run-actor.ts";
import type { ActiveAttempts } from "./active-attempts.ts";

interface AdoptionParts {
  readonly activeAttempts: ActiveAttempts;
  readonly executors: Pick<ExecutorRoom, "adopting">;
}

export class AttemptAdoption {
  readonly #parts: AdoptionParts;
  readonly #byRun: ReadonlyMap<number, readonly StoredAssignment[]>;

  constructor(parts: AdoptionParts, assignments: readonly StoredAssignment[]) {
    this.#parts = parts;
    this.#byRun = Map.groupBy(assignments, (row) => row.dag_run_id);
  }

  get size(): number {
    return this.#byRun.size;
  }

  adopt(actor: RunActor): void {
    const { activeAttempts, executors } = this.#parts;
    for (const row of this.#byRun.get(actor.id) ?? []) {
      const executor = executors.adopting(row.executor);
      if (row.kind !== "attempt" || !executor || activeAttempts.has(row.id)) continue;
      const { id, map_index: mapIndex, task_id: taskId } = row;
      const node = actor.model.get(taskId, mapIndex)?.node;
      const isStream = node !== undefined && isStreaming(node.manifest);
      activeAttempts.adopt(id, { runId: actor.id, taskId, mapIndex, executor, isStream });
      executor.remote?.adopt([adopted(row)]);
    }
  }
}

/** @param awaited Reactions that this job has requested. A former owner requested the others; they are requested again. */
export async function readAdoption(
  database: Database,
  actors: readonly RunActor[],
  { awaited, ...parts }: AdoptionParts & { readonly awaited: Iterable<string> },
): Promise<AttemptAdoption> {
  const known = actors.filter(({ run }) => !run.is_fresh).map(({ id }) => id);
  const rows = known.length > 0 ? await loadAssignments(database, known) : [];
  const own = new Set(awaited);
  const orphans = rows.filter(({ id, kind }) => kind === "reaction" && !own.has(id));
  await deleteAssignments(
    database,
    orphans.map(({ id }) => id),
  );
  return new AttemptAdoption(parts, rows);
}

function adopted({ config, id, is_claimed: isClaimed, priority, queue }: StoredAssignment): AdoptedAttempt {
  return { config, id, isClaimed, priority, queue };
}
