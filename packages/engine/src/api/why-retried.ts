/** `why`, of what has failed and is tried again with its group or its run, and of what waits for such a group. */
import type { DagManifest, GroupManifest, TaskManifest } from "@tradewind/sdk/manifest";
import type { Connection } from "../store/database.ts";
import type { DagRunRow } from "../store/list/dag-runs.ts";
import { loadGroups, type StoredGroup } from "../store/run-groups.ts";
import { iso } from "./fields.ts";
import type { Finding } from "./why-deferred.ts";

interface Place {
  readonly manifest: DagManifest;
  readonly run: DagRunRow;
  readonly task: TaskManifest;
}

/** Why a task that has ended runs again. */
export async function retryReasons(db: Connection, { manifest, run, task }: Place): Promise<Finding[]> {
  if (run.state !== "running") return [];
  const { max_tries: most, retry_at: at, try_number } = run;
  if (at !== null) {
    const next = `try ${try_number + 1} of ${most} begins at ${iso(at)}`;
    return [{ code: "RUN_RETRY", message: `The run has failed; its ${next}.`, until: at }];
  }
  const groups = unitsAround(manifest, task.taskId);
  const waiting = (await standing(db, { manifest, run }, groups)).filter(({ state }) => state === "waiting");
  return waiting.map(({ group_id, max_tries, retry_at, try_number }) => {
    const next = `try ${try_number + 1} of ${max_tries + 1} begins at ${iso(retry_at)}`;
    const message = `Its group "${group_id}" has failed; its ${next}, with all its tasks.`;
    return { code: "GROUP_RETRY", message, until: retry_at };
  });
}

/** Groups with retries that a task comes after: it sees nothing of them before they have ended for good. */
export async function groupReasons(db: Connection, { manifest, run, task }: Place): Promise<Finding[]> {
  const own = unitsAround(manifest, task.taskId);
  const before = task.upstream.flatMap((id) => unitsAround(manifest, id)).filter((id) => !own.includes(id));
  const open = (await standing(db, { manifest, run }, [...new Set(before)])).filter(
    ({ state }) => state === "open" || state === "waiting",
  );
  return open.map(({ group_id, max_tries, retry_at, try_number }) => {
    const which = (n: number) => `try ${n} of ${max_tries + 1}`;
    const now =
      retry_at === null
        ? `${which(try_number)} is under way`
        : `${which(try_number)} has failed, the next one begins at ${iso(retry_at)}`;
    const message = `It waits for the end of all of group "${group_id}", which has retries: ${now}.`;
    return { code: "GROUP_OPEN", message, until: retry_at };
  });
}

/** The groups with retries around a task. */
function unitsAround({ groups, tasks }: DagManifest, taskId: string): string[] {
  const byId = new Map(groups.map((group) => [group.groupId, group]));
  const units: string[] = [];
  const first = tasks.find((task) => task.taskId === taskId)?.group ?? null;
  for (let id = first; id !== null; ) {
    const group: GroupManifest | undefined = byId.get(id);
    if (group?.retry) units.push(id);
    id = group?.parent ?? null;
  }
  return units;
}

/** One without a row is at its first try. */
async function standing(
  db: Connection,
  { manifest, run }: Omit<Place, "task">,
  ids: readonly string[],
): Promise<StoredGroup[]> {
  if (ids.length === 0) return [];
  const rows = new Map((await loadGroups(db, [run.id])).map((row) => [row.group_id, row]));
  const first = { dag_run_id: run.id, state: "open", try_number: 1, retry_at: null } as const;
  const retries = new Map(manifest.groups.map(({ groupId, retry }) => [groupId, retry?.retries ?? 0]));
  return ids.map((id) => rows.get(id) ?? { ...first, group_id: id, max_tries: retries.get(id) ?? 0 });
}
