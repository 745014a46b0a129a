/** The tasks skipped by branches and short circuits. */
import type { Instance } from "../run/instance.ts";
import type { InstanceTable } from "../run/instance-table.ts";
import type { TaskState } from "../run/states.ts";
import { commonDepth } from "./scope.ts";

/** The tasks that a finished branch skipped. Stored, so that such a task is skipped again when only that task is cleared. */
export interface BranchVerdict {
  readonly taskId: string;
  readonly mapIndex: number;
  readonly skip: readonly string[];
}

const UNSTARTED: ReadonlySet<TaskState> = new Set(["pending", "scheduled"]);
const NOT_LET_THROUGH: ReadonlySet<TaskState> = new Set(["pending"]);

export class Branches {
  readonly #table: InstanceTable;
  readonly #skip: (instance: Instance, reason: string) => void;
  /** The latest verdict of each branch. */
  readonly #verdicts = new Map<string, BranchVerdict>();

  constructor(
    table: InstanceTable,
    verdicts: readonly BranchVerdict[],
    skip: (instance: Instance, reason: string) => void,
  ) {
    this.#table = table;
    this.#skip = skip;
    for (const verdict of verdicts) this.#verdicts.set(nameOf(verdict), verdict);
  }

  spoke(branch: Instance, skip: readonly string[]): void {
    const verdict = { taskId: branch.node.id, mapIndex: branch.mapIndex, skip };
    if (skip.length > 0) this.#verdicts.set(nameOf(verdict), verdict);
    else if (this.#verdicts.size > 0) this.#verdicts.delete(nameOf(verdict));
    this.#ruleOut(branch, skip, UNSTARTED);
  }

  /** Applies the verdicts again, to state `none` only: a task active when its branch ended also survives a lost attempt. */
  repeat(): void {
    for (const { mapIndex, skip, taskId } of this.#verdicts.values()) {
      const branch = this.#table.get(taskId, mapIndex);
      if (branch?.state === "success") this.#ruleOut(branch, skip, NOT_LET_THROUGH);
    }
  }

  /** The same for the branches among these instances. */
  repeatOf(instances: Iterable<Instance>): void {
    if (this.#verdicts.size === 0) return;
    for (const branch of instances) {
      const verdict = this.#verdicts.get(nameOf({ taskId: branch.node.id, mapIndex: branch.mapIndex }));
      if (verdict && branch.state === "success") this.#ruleOut(branch, verdict.skip, NOT_LET_THROUGH);
    }
  }

  /** All instances that the current verdicts skip, in any state. */
  *ruledOut(): Iterable<Instance> {
    for (const { mapIndex, skip, taskId } of this.#verdicts.values()) {
      const branch = this.#table.get(taskId, mapIndex);
      if (branch?.state === "success") yield* this.#targets(branch, skip);
    }
  }

  #ruleOut(branch: Instance, taskIds: readonly string[], from: ReadonlySet<TaskState>): void {
    for (const instance of this.#targets(branch, taskIds))
      if (from.has(instance.state)) this.#skip(instance, `ruled out by ${branch.node.id}`);
  }

  /**
   * Only instances in the branch's own items: a task that gathers items has its own rule. Tasks outside of a group with
   * retries count only once the group has ended: its next try may decide otherwise.
   */
  *#targets(branch: Instance, taskIds: readonly string[]): Iterable<Instance> {
    for (const taskId of taskIds) {
      const slot = this.#table.slotOf(taskId);
      if (!slot || commonDepth(branch.node.scope, slot.node.scope) < branch.level) continue;
      if (this.#table.groups?.isHiddenFrom(branch, slot.node)) continue;
      yield* this.#table.beneath(slot, branch);
    }
  }
}

function nameOf({ mapIndex, taskId }: Omit<BranchVerdict, "skip">): string {
  return `${taskId} ${mapIndex}`;
}
