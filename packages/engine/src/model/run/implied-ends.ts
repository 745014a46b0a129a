/**
 * Which instances begin again after an edit of a run that goes on.
 *
 * An end that no attempt reported, no person set and no stop caused is implied: by a trigger rule, a branch, a map, or the
 * end of the run itself. An implied end holds while it follows from the rest of the run. After a clear or a mark, each implied end that
 * does not follow any more is taken back, and the task is judged like one that has never begun. The same holds for a task
 * that its rule has let run and that has not begun. So a run succeeds only if every task that its rules demand has run after
 * what it depends on, or was marked by a person.
 *
 * A task that needs a start of its own, and never had one, is not demanded by the rules: its end stays. A start that ended
 * before the task began counts as its first try (orders.ts).
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

/** An instance as an edit finds it. */
export interface EditableRow extends InstanceRow {
  /** A person set its state, or a person or a rule stopped it. */
  readonly isMarked: boolean;
  /** The list of its map was read, and is empty or unusable: that end follows while the list's sources stay as they are. */
  readonly isListEnd?: boolean;
}

export interface EditedRun<R extends EditableRow> {
  readonly graph: Graph;
  /** As they were before the edit; of one that was marked, as it is now. */
  readonly rows: readonly R[];
  readonly skips: readonly BranchVerdict[];
  readonly expansions: readonly ExpansionRow[];
  readonly groups: readonly GroupRow[];
}

const IMPLIED: ReadonlySet<TaskState> = new Set(["skipped", "upstream_failed"]);

/**
 * Of an edited run: the rows that were chosen to begin again, and all that have to begin again with them. `wholeGroups`: of a
 * group with retries all tasks, as in its next try.
 */
export function beginAgain<R extends EditableRow>(
  run: EditedRun<R>,
  chosen: readonly R[],
  { wholeGroups }: { readonly wholeGroups: boolean },
): R[] {
  const byKey = new Map(run.rows.map((row) => [keyOf(row), row]));
  const table = load(run, new Map());
  /** What may run after the edit: with it, the setups in whose scope it is. */
  const again = new Set(chosen);
  /** What has not begun and waits for its upstream once more, or ends otherwise than before: neither needs a setup. */
  const judgedAgain = new Map<R, TaskState>();
  for (let isChanged = true; isChanged; ) {
    const size = again.size;
    const instances = [...again].flatMap((row) => table.get(row.taskId, row.mapIndex) ?? []);
    const mates = wholeGroups ? instances.flatMap((each) => [...groupMates(table, each)]) : [];
    const needed = [...mates, ...setupsOf(table, run.graph, instances).filter(isUsed)];
    for (const { mapIndex, node, state } of needed)
      if (state !== "none") again.add(byKey.get(keyOf({ taskId: node.id, mapIndex }))!);
    const states = new Map([
      ...judgedAgain,
      ...[...again].map((row) => [row, clearedAs(row.state)] as const),
    ]);
    const { open, others } = unfounded(run, states);
    for (const row of open) again.add(row);
    isChanged = again.size > size;
    // When all that runs again is known.
    if (isChanged) continue;
    for (const [row, state] of others) judgedAgain.set(row, state);
    isChanged = others.size > 0;
  }
  return [...new Set([...again, ...judgedAgain.keys()])];
}

/** A setup that has not ended makes what is needed; a teardown that has begun clears it away. */
function isUsed({ node, state }: Instance): boolean {
  return node.manifest.role === "teardown" || isFinished(state);
}

/**
 * What does not follow from the rest of the run, once these rows are in these states. `open`: implied ends of what may run.
 * `others`: what ends otherwise now, and what was about to begin and is not any more; with the states that follow.
 */
function unfounded<R extends EditableRow>(
  run: EditedRun<R>,
  states: ReadonlyMap<R, TaskState>,
): { readonly open: R[]; readonly others: Map<R, TaskState> } {
  const table = load(run, states);
  const rows = new Map<Instance, R>();
  for (const row of run.rows) {
    const isOut = states.get(row) === "none" || states.get(row) === "restarting";
    const instance =
      isOut || !(isImpliedEnd(row) || isLetThrough(row)) ? undefined : table.get(row.taskId, row.mapIndex);
    if (instance && !(needsStart(instance.node.manifest) && row.tryNumber === 0)) rows.set(instance, row);
  }
  const branches = new Branches(table, run.skips, () => {});
  const verdicts = function* (): Iterable<readonly [R, Instance, Verdict]> {
    const ruledOut = new Set(branches.ruledOut());
    for (const instance of table.slots.flatMap(({ instances }) => [...instances])) {
      const row = rows.get(instance);
      if (!row || instance.state === "none") continue;
      const isSkipped = ruledOut.has(instance) && !isLetThrough(row);
      yield [row, instance, isSkipped ? "skipped" : verdictOn(table, instance, row)];
    }
  };
  const open: R[] = [];
  // Once is enough, but for groups that hide their ends again: what they hide may come before the task that opened them.
  for (let before = -1; before !== open.length; ) {
    before = open.length;
    for (const [row, instance, verdict] of verdicts()) {
      if (isLetThrough(row) || (verdict !== "run" && verdict !== "wait")) continue;
      table.move(instance, "none");
      open.push(row);
    }
  }
  const others = new Map<R, TaskState>();
  if (open.length > 0) return { open, others };
  for (const [row, instance, verdict] of verdicts()) {
    const isOpen = verdict === "run" || verdict === "wait";
    if (verdict === instance.state || verdict === "run" || (isOpen && !isLetThrough(row))) continue;
    const follows = isOpen ? "none" : verdict;
    table.move(instance, "none");
    if (follows !== "none") table.move(instance, follows);
    others.set(row, follows);
  }
  return { open, others };
}

/** Its rule has let it run, and it has not begun. */
function isLetThrough({ state, resumedAttempt }: EditableRow): boolean {
  return state === "scheduled" && (resumedAttempt ?? null) === null;
}

/** Neither an attempt nor a person nor a stop has ended it. */
export function isImpliedEnd({ attempt, isMarked, state }: EditableRow): boolean {
  return IMPLIED.has(state) && attempt === null && !isMarked;
}

/** What stands for the items of a map has its own rule only if it is alone in the map; then the map's list decides. */
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
  // Of these groups something begins again, if only to end otherwise.
  for (const { mapIndex, taskId } of states.keys()) {
    const instance = table.get(taskId, mapIndex);
    if (instance) table.groups?.reopen(instance);
  }
  return table;
}

/** What has a process begins again when that is gone. */
function clearedAs(state: TaskState): TaskState {
  return OCCUPYING.has(state) ? "restarting" : "none";
}

function keyOf({ mapIndex, taskId }: Pick<InstanceRow, "mapIndex" | "taskId">): string {
  return `${mapIndex} ${taskId}`;
}
