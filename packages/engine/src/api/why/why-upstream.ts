/** `why` for upstream tasks: what the trigger rule or the list of a map waits for, or was decided by. */
import type { DagManifest, TaskManifest } from "@tradewind/sdk/manifest";
import { emptyCounters, judge, type Verdict } from "../../model/graph/trigger-rules.ts";
import { isListEnd, MAPPED_OVER_NOTHING } from "../../model/map/input-reader.ts";
import { FINISHED, isTaskState } from "../../model/run/states.ts";
import type { Connection } from "../../store/database/database.ts";
import type { DagRunRow } from "../../store/list/dag-runs.ts";
import type { TaskInstanceRow } from "../../store/list/task-instances.ts";
import { countStates, type StateCount } from "../../store/why/why-facts.ts";
import type { Finding } from "./why-deferred.ts";
import { type MappedUpstream, mappedUpstream } from "./why-mapped.ts";
import { groupReasons } from "./why-retried.ts";

const LISTED = 10;
const FAILED: ReadonlySet<string> = new Set(["failed", "upstream_failed"]);
const SKIPPED: ReadonlySet<string> = new Set(["skipped"]);

interface Place {
  readonly run: DagRunRow;
  readonly manifest: DagManifest;
  readonly task: TaskManifest;
  /** undefined before the start of the run. */
  readonly instance: TaskInstanceRow | undefined;
}

/** For a task that has not started. */
export async function upstreamReasons(db: Connection, place: Place): Promise<Finding[]> {
  const { counts, sources } = await upstreamOf(db, place);
  if (sources?.some(({ state }) => state !== "success"))
    return [reason("MAP_SOURCE", "It is mapped over a list that does not exist yet", sources)];
  const { rule, upstream } = place.task;
  if (upstream.length === 0) return [];
  const verdict = ruleVerdict(rule, counts);
  const groups = await groupReasons(db, place);
  if (verdict === "run" || (verdict !== "wait" && groups.length > 0)) return groups;
  if (verdict !== "wait") return [reason("UPSTREAM_DECIDED", `Its rule ${rule} gives ${verdict}`, counts)];
  const open = counts.filter(({ state }) => !isEnded(state));
  const waited = open.length > 0 ? open : counts;
  return [reason("UPSTREAM", `Its rule ${rule} waits for upstream tasks`, waited), ...groups];
}

/** For an instance that ended as skipped or upstream_failed without running: the instances that decided it. */
export async function endReasons(db: Connection, place: Place): Promise<Finding[]> {
  const { instance, task } = place;
  const { reason: own = null, state } = instance ?? {};
  if (state !== "skipped" && state !== "upstream_failed") return [];
  if (isListEnd(own) && own !== MAPPED_OVER_NOTHING) return [];
  const { counts, sources } = await upstreamOf(db, place);
  if (own === MAPPED_OVER_NOTHING) {
    const names = [...new Set(sources?.map(({ task_id }) => task_id))].join(" and ");
    const whose = names === "" ? "" : ` returned by ${names}`;
    return [{ code: "MAP_EMPTY", message: `It is mapped over an empty list${whose}.`, until: null }];
  }
  if (sources && ruleVerdict("allSuccess", sources) === state) {
    const failing = deciding(sources, state);
    return [reason("MAP_SOURCE", "Its map has no list", failing)];
  }
  // Otherwise a branch, a setup, the end of the run or a user decided; the reason of the instance names it.
  const isByRule = own === null || own.startsWith("trigger rule");
  if (!isByRule || ruleVerdict(task.rule, counts) !== state) return [];
  return [reason("UPSTREAM_DECIDED", `Its rule ${task.rule} gives ${state}`, deciding(counts, state))];
}

/** "a is failed, b is not started (3 instances)". */
export function listStates(counts: readonly StateCount[]): string {
  const shown = counts
    .slice(0, LISTED)
    .map(
      ({ count, state, task_id }) =>
        `${task_id} is ${state === "pending" ? "not started" : state}${count > 1 ? ` (${count} instances)` : ""}`,
    );
  const more = counts.length - shown.length;
  return more > 0 ? `${shown.join(", ")} and ${more} more` : shown.join(", ");
}

async function upstreamOf(db: Connection, { instance, manifest, run, task }: Place): Promise<MappedUpstream> {
  const which = { mapIndex: instance?.map_index ?? -1, taskId: task.taskId };
  const mapped =
    task.map === undefined ? null : await mappedUpstream(db, { dagRunId: run.id, manifest }, which);
  return mapped ?? { counts: await countStates(db, run.id, task.upstream), sources: null };
}

function ruleVerdict(rule: TaskManifest["rule"], counts: readonly StateCount[]): Verdict {
  const counters = emptyCounters();
  for (const { count, state } of counts) {
    counters.total += count;
    if (state === "success") counters.success += count;
    else if (state === "skipped") counters.skipped += count;
    else if (state === "failed") counters.failed += count;
    else if (state === "upstream_failed") counters.upstreamFailed += count;
    else if (state === "removed") counters.removed += count;
  }
  return judge(rule, counters);
}

/** All of them if none has a matching state: a rule such as oneFailed skips when all have succeeded. */
function deciding(
  counts: readonly StateCount[],
  state: "skipped" | "upstream_failed",
): readonly StateCount[] {
  const alike = counts.filter((each) => (state === "skipped" ? SKIPPED : FAILED).has(each.state));
  return alike.length > 0 ? alike : counts;
}

function isEnded(state: string): boolean {
  return isTaskState(state) && FINISHED.has(state);
}

function reason(code: string, message: string, counts: readonly StateCount[]): Finding {
  const tasks = counts.slice(0, LISTED).map(({ first, state, task_id }) => ({
    task_id,
    map_index: first,
    state: state === "pending" ? null : state,
  }));
  const names = counts.length === 0 ? "" : `: ${listStates(counts)}`;
  return { code, message: `${message}${names}.`, until: null, tasks };
}
