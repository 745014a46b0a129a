/**
 * Groups with retries in the reference interpreter: the end of a task is hidden from tasks outside of its group until all
 * tasks of the group have ended and the group is not retried. A mapped group is one group per item.
 */
import type { DagManifest, GroupManifest, TaskManifest } from "@tradewind/sdk/manifest";
import type { ReferenceInstance } from "./reference-interpreter.ts";
import { isEnd, type ReferenceState } from "./reference-rules.ts";
import { type Placed, startsWith } from "./reference-shape.ts";

interface Definition {
  readonly id: string;
  /** The enclosing groups. */
  readonly around: readonly string[];
  readonly retries: number;
  readonly members: readonly string[];
  /** Number of enclosing maps: the group exists once per item of the innermost map. */
  readonly depth: number;
}

/** A group, or one item of it. */
export interface ReferenceGroup extends Definition {
  readonly path: readonly number[];
  state: "open" | "waiting" | "success" | "failed" | "skipped";
  tries: number;
  /** Number of tries before an enclosing group was retried. */
  triesBefore: number;
}

export class ReferenceGroups {
  readonly #tasks: readonly TaskManifest[];
  /** Innermost first. */
  readonly #definitions: readonly Definition[];
  /** Includes groups of removed items: the try number continues if the item is created again. */
  readonly #known = new Map<string, ReferenceGroup>();
  #groups: readonly ReferenceGroup[] = [];

  constructor({ groups, maps = [], tasks }: DagManifest) {
    this.#tasks = tasks;
    const around = (id: string | null): string[] => {
      const group = groups.find(({ groupId }) => groupId === id);
      return group ? [group.groupId, ...around(group.parent)] : [];
    };
    const mapDepth = (id: string | null | undefined): number => {
      const map = maps.find(({ mapId }) => mapId === id);
      return map ? 1 + mapDepth(map.parent) : 0;
    };
    const nesting = ({ groupId }: GroupManifest) => around(groupId).length;
    this.#definitions = [...groups]
      .sort((a, b) => nesting(b) - nesting(a))
      .map(({ groupId, retry }) => ({
        id: groupId,
        around: around(groupId).slice(1),
        retries: retry?.retries ?? 0,
        members: tasks.filter(({ group }) => around(group).includes(groupId)).map(({ taskId }) => taskId),
        depth: mapDepth(retry?.map),
      }));
  }

  /** Updates the groups that have instances, innermost first. Must be called first when instances are created or removed. */
  exist(instances: readonly ReferenceInstance[]): void {
    const before = this.#groups;
    this.#groups = this.#definitions.flatMap((definition) => {
      const { depth, id, members } = definition;
      const inside = instances.filter((i) => members.includes(i.taskId) && i.path.length >= depth);
      const paths = new Map(inside.map(({ path }) => [`${path.slice(0, depth)}`, path.slice(0, depth)]));
      return [...paths].map(([name, path]) => {
        const key = `${id}[${name}]`;
        const group: ReferenceGroup = this.#known.get(key) ?? {
          ...definition,
          path,
          state: "open",
          tries: 1,
          triesBefore: 0,
        };
        this.#known.set(key, group);
        return group;
      });
    });
    // A group that is created again at the same path has all retries.
    for (const group of before) if (!this.#groups.includes(group)) group.triesBefore = group.tries - 1;
  }

  all(): readonly ReferenceGroup[] {
    return this.#groups;
  }

  waiting(): readonly ReferenceGroup[] {
    return this.#groups.filter(({ state }) => state === "waiting");
  }

  /** Whether an unfinished group with retries contains the instance, but not all tasks of `from`. */
  isHidden(instance: ReferenceInstance, from: readonly string[]): boolean {
    return this.#groups.some(
      (group) =>
        group.retries > 0 &&
        (group.state === "open" || group.state === "waiting") &&
        isIn(instance, group) &&
        from.some((id) => !group.members.includes(id)),
    );
  }

  seen(instance: ReferenceInstance, from: readonly string[]): ReferenceState {
    return isEnd(instance.state) && this.isHidden(instance, from) ? "running" : instance.state;
  }

  /** true: a group has ended. */
  judge(instances: readonly ReferenceInstance[]): boolean {
    let hasEnded = false;
    for (const group of this.#groups) {
      const own = instances.filter((i) => isIn(i, group));
      const isOver = !this.#isUnfinished(group, instances) && !this.#hasOpenInside(group);
      if (group.state !== "open" || !isOver) continue;
      const last = this.#last(group.members);
      const isFailed = own.some(
        ({ state, taskId }) => last.includes(taskId) && (state === "failed" || state === "upstream_failed"),
      );
      if (isFailed && group.tries - group.triesBefore <= group.retries) group.state = "waiting";
      else {
        const isSkipped = own.every(({ state }) => state === "skipped");
        group.state = isFailed ? "failed" : isSkipped ? "skipped" : "success";
        hasEnded = true;
      }
    }
    return hasEnded;
  }

  /** Returns the instances that begin again. Inner groups start with all retries. */
  beginAgain(begun: readonly ReferenceGroup[], instances: readonly ReferenceInstance[]): ReferenceInstance[] {
    for (const group of begun) {
      group.state = "open";
      group.tries++;
      for (const inner of this.#groups) {
        if (!isInside(inner, group) || inner.state === "open") continue;
        Object.assign(inner, { state: "open", triesBefore: inner.tries, tries: inner.tries + 1 });
      }
    }
    return instances.filter((i) => begun.some((group) => isIn(i, group)));
  }

  /** Whether both instances are in the same group with retries. */
  areMates(one: ReferenceInstance, other: ReferenceInstance): boolean {
    return this.#definitions.some(({ depth, members, retries }) => {
      if (retries === 0 || !members.includes(one.taskId) || !members.includes(other.taskId)) return false;
      return startsWith(other.path, one.path.slice(0, depth));
    });
  }

  /** Reopens the groups that have ended, or wait for their next try, and have an unfinished instance. */
  reopen(instances: readonly ReferenceInstance[]): void {
    for (const group of this.#groups) {
      if (group.state === "open" || !this.#isUnfinished(group, instances)) continue;
      if (group.state !== "waiting")
        Object.assign(group, { triesBefore: group.tries, tries: group.tries + 1 });
      group.state = "open";
    }
  }

  /** After an edit, a group that waits for its next try may be a success. */
  judgeAgain(): void {
    for (const group of this.waiting()) group.state = "open";
  }

  /** An instance in the group has not ended, or a placeholder for items of the group. */
  #isUnfinished({ members, path }: ReferenceGroup, instances: readonly ReferenceInstance[]): boolean {
    return instances.some(
      (i) =>
        members.includes(i.taskId) && !isEnd(i.state) && startsWith(i.path, path.slice(0, i.path.length)),
    );
  }

  #hasOpenInside(group: ReferenceGroup): boolean {
    return this.#groups.some(
      (inner) => isInside(inner, group) && (inner.state === "open" || inner.state === "waiting"),
    );
  }

  /** The last tasks of a group, without teardowns unless there are no others. */
  #last(members: readonly string[]): string[] {
    const own = this.#tasks.filter(({ taskId }) => members.includes(taskId));
    const last = (among: readonly TaskManifest[]) =>
      among.filter((task) => !among.some(({ upstream }) => upstream.includes(task.taskId)));
    const work = last(own.filter(({ role }) => role !== "teardown"));
    return (work.length > 0 ? work : last(own)).map(({ taskId }) => taskId);
  }
}

export function isIn({ path, taskId }: Placed, group: ReferenceGroup): boolean {
  return group.members.includes(taskId) && startsWith(path, group.path);
}

function isInside(inner: ReferenceGroup, outer: ReferenceGroup): boolean {
  return inner.around.includes(outer.id) && startsWith(inner.path, outer.path);
}
