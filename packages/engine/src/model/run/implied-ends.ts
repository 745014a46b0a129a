/**
 * Which instances start again after an edit of an active run.
 *
 * An end is implied if no attempt reported it, no user set it and no stop caused it: it comes from a trigger rule, a branch,
 * a map, or the end of the run. An implied end holds while it follows from the rest of the run. After a clear or a mark,
 * each implied end that no longer follows is undone, and the task is evaluated like one that has never started. The same
 * holds for a scheduled task that has not started. So a run succeeds only if every task that its rules require has run after
 * its dependencies, or was marked by a user.
 *
 * A task that needs a start of its own and never had one is not required by the rules: its end stays. A start that ended
 * before the task started counts as its first try (commands.ts).
 */
import { Branches, type BranchVerdict } from "../graph/branches.ts";
import type { Graph } from "../graph/graph.ts";
import type { GroupRow } from "../graph/groups.ts";
import { judge, type Verdict } from "../graph/trigger-rules.ts";
import type { ExpansionRow } from "../map/expansions.ts";
import { needsStart } from "../signal/drive.ts";
import { type Instance, type InstanceRow, isUnexpanded } from "./instance.ts";
import type { InstanceTable } from "./instance-table.ts";
import { loadTable } from "./loading.ts";
import { groupMates, setupsOf } from "./run-retry.ts";
import { isFinished, OCCUPYING, type TaskState } from "./states.ts";

/** An instance row before an edit. */
export interface EditableRow extends InstanceRow {
  /** A user set its state, or a user or a rule stopped it. */
  readonly isMarked: boolean;
  /** The list of its map was read and is empty or invalid: this end holds while the sources of the list do not change. */
  readonly isListEnd?: boolean;
}

export interface EditedRun<R extends EditableRow> {
  readonly graph: Graph;
  /** As before the edit; a marked row as after it. */
  readonly rows: readonly R[];
  readonly skips: readonly BranchVerdict[];
  readonly expansions: readonly ExpansionRow[];
  readonly groups: readonly GroupRow[];
}

const IMPLIED: ReadonlySet<TaskState> = new Set(["skipped", "upstream_failed"]);

/**
 * The rows of an edited run that were chosen to start again, and all rows that have to start again with them. `wholeGroups`:
 * with a task of a group with retries, all tasks of the group, as in its next try.
 */
export function beginAgain<R extends EditableRow>(
  run: EditedRun<R>,
  chosen: readonly R[],
  { wholeGroups }: { readonly wholeGroups: boolean },
): R[] {
  const byKey = new Map(run.rows.map((row) => [keyOf(row), row]));
  const table = load(run, new Map());
  /** Rows that may run after the edit. They include the setups in whose scopes they are. */
  const again = new Set(chosen);
  /** Rows that wait for their upstream again without having started, or end in another state: they need no setup. */
  const judgedAgain = new Map<R, TaskState>();
  for (let isChanged = true; isChanged; ) {
    const size = again.size;
    const instances = [...again].flatMap((row) => table.get(row.taskId, row.mapIndex) ?? []);
    const mates = wholeGroups ? instances.flatMap((each) => [...groupMates(table, each)]) : [];
    const needed = [...mates, ...setupsOf(table, run.graph, instances).filter(isUsed)];
    for (const { mapIndex, node, state } of needed)
      if (state !== "pending") again.add(byKey.get(keyOf({ taskId: node.id, mapIndex }))!);
    const states = new Map([
      ...judgedAgain,
      ...[...again].map((row) => [row, clearedAs(row.state)] as const),
    ]);
    const { open, others } = unfounded(run, states);
    for (const row of open) again.add(row);
    isChanged = again.size > size;
    // The other rows are evaluated once all rows that run again are known.
    if (isChanged) continue;
    for (const [row, state] of others) judgedAgain.set(row, state);
    isChanged = others.size > 0;
  }
  return [...new Set([...again, ...judgedAgain.keys()])];
}

/** An unfinished setup will provide what is needed. A teardown always has to run again. */
function isUsed({ node, state }: Instance): boolean {
  return node.manifest.role === "teardown" || isFinished(state);
}

/**
 * Ends that do not follow from the rest of the run once these rows are in these states. `open`: implied ends of tasks that
 * may run. `others`: tasks that now end in another state, or were scheduled and must wait again, with their new states.
 */
function unfounded<R extends EditableRow>(
  run: EditedRun<R>,
  states: ReadonlyMap<R, TaskState>,
): { readonly open: R[]; readonly others: Map<R, TaskState> } {
  const table = load(run, states);
  const rows = new Map<Instance, R>();
  for (const row of run.rows) {
    const isOut = states.get(row) === "pending" || states.get(row) === "restarting";
    const instance =
      isOut || !(isImpliedEnd(row) || isLetThrough(row)) ? undefined : table.get(row.taskId, row.mapIndex);
    if (instance && !(needsStart(instance.node.manifest) && row.tryNumber === 0)) rows.set(instance, row);
  }
  const branches = new Branches(table, run.skips, () => {});
  const verdicts = function* (): Iterable<readonly [R, Instance, Verdict]> {
    const ruledOut = new Set(branches.ruledOut());
    for (const instance of table.slots.flatMap(({ instances }) => [...instances])) {
      const row = rows.get(instance);
      if (!row || instance.state === "pending") continue;
      const isSkipped = ruledOut.has(instance) && !isLetThrough(row);
      yield [row, instance, isSkipped ? "skipped" : verdictOn(table, instance, row)];
    }
  };
  const open: R[] = [];
  // One pass is enough, except for groups that hide their ends again: a hidden end may precede the task that reopened it.
  for (let before = -1; before !== open.length; ) {
    before = open.length;
    for (const [row, instance, verdict] of verdicts()) {
      if (isLetThrough(row) || (verdict !== "run" && verdict !== "wait")) continue;
      table.move(instance, "pending");
      open.push(row);
    }
  }
  const others = new Map<R, TaskState>();
  if (open.length > 0) return { open, others };
  for (const [row, instance, verdict] of verdicts()) {
    const isOpen = verdict === "run" || verdict === "wait";
    if (verdict === instance.state || verdict === "run" || (isOpen && !isLetThrough(row))) continue;
    const follows = isOpen ? "pending" : verdict;
    table.move(instance, "pending");
    if (follows !== "pending") table.move(instance, follows);
    others.set(row, follows);
  }
  return { open, others };
}

/** Its rule allowed it to run, and it has not started. */
function isLetThrough({ state, resumedAttempt }: EditableRow): boolean {
  return state === "scheduled" && (resumedAttempt ?? null) === null;
}

/** Ended by neither an attempt nor a user nor a stop. */
export function isImpliedEnd({ attempt, isMarked, state }: EditableRow): boolean {
  return IMPLIED.has(state) && attempt === null && !isMarked;
}

/** A stand-in is subject to its own rule only if its task is alone in the map; then the map's list decides. */
function verdictOn(table: InstanceTable, instance: Instance, { isListEnd }: EditableRow): Verdict {
  if (!isUnexpanded(instance)) return table.verdictOn(instance);
  const scope = instance.node.scope!.chain[instance.level]!;
  const own = scope.members.length === 1 ? table.verdictOn(instance) : "run";
  if (own !== "run") return own;
  const verdict = judge("allSuccess", table.sourcesOf({ scope, parent: instance.ordinal }));
  return verdict === "run" && isListEnd ? (instance.state as Verdict) : verdict;
}

function load<R extends EditableRow>(run: EditedRun<R>, states: ReadonlyMap<R, TaskState>): InstanceTable {
  const rows = run.rows.map((row) => ({ ...row, state: states.get(row) ?? row.state }));
  const table = loadTable(run.graph, rows, run.expansions);
  table.groups?.restore(run.groups);
  // A task of these groups starts again, possibly only to end in another state.
  for (const { mapIndex, taskId } of states.keys()) {
    const instance = table.get(taskId, mapIndex);
    if (instance) table.groups?.reopen(instance);
  }
  return table;
}

/** An instance with a process starts again when the process has ended. */
function clearedAs(state: TaskState): TaskState {
  return OCCUPYING.has(state) ? "restarting" : "pending";
}

function keyOf({ mapIndex, taskId }: Pick<InstanceRow, "mapIndex" | "taskId">): string {
  return `${mapIndex} ${taskId}`;
}
