/**
 * Groups with retries as the reference interpreter knows them: what is outside sees no end of a task of a group before all
 * tasks of the group have ended and the group is not tried again.
 */
import type { DagManifest, GroupManifest, TaskManifest } from "@tradewind/sdk/manifest";
import type { ReferenceInstance } from "./reference-interpreter.ts";
import { isEnd, type ReferenceState } from "./reference-rules.ts";

export interface ReferenceGroup {
  readonly id: string;
  /** The groups that it is in. */
  readonly around: readonly string[];
  readonly retries: number;
  readonly members: readonly string[];
  state: "open" | "waiting" | "success" | "failed" | "skipped";
  tries: number;
  /** How many of them were before a group around it began again. */
  triesBefore: number;
}

export class ReferenceGroups {
  readonly #tasks: readonly TaskManifest[];
  /** The innermost first. */
  readonly #groups: readonly ReferenceGroup[];

  constructor({ groups, tasks }: DagManifest) {
    this.#tasks = tasks;
    const around = (id: string | null): string[] => {
      const group = groups.find(({ groupId }) => groupId === id);
      return group ? [group.groupId, ...around(group.parent)] : [];
    };
    const depth = ({ groupId }: GroupManifest) => around(groupId).length;
    this.#groups = [...groups]
      .sort((a, b) => depth(b) - depth(a))
      .map(({ groupId, retry }) => ({
        id: groupId,
        around: around(groupId).slice(1),
        retries: retry?.retries ?? 0,
        members: tasks.filter(({ group }) => around(group).includes(groupId)).map(({ taskId }) => taskId),
        state: "open",
        tries: 1,
        triesBefore: 0,
      }));
  }

  all(): readonly ReferenceGroup[] {
    return this.#groups;
  }

  waiting(): readonly ReferenceGroup[] {
    return this.#groups.filter(({ state }) => state === "waiting");
  }

  /** Of a task, from others: some group with retries is around it, and not around all of them, and has not ended. */
  isHidden(taskId: string, from: readonly string[]): boolean {
    return this.#groups.some(
      ({ members, retries, state }) =>
        retries > 0 &&
        (state === "open" || state === "waiting") &&
        members.includes(taskId) &&
        from.some((id) => !members.includes(id)),
    );
  }

  seen({ state, taskId }: ReferenceInstance, from: readonly string[]): ReferenceState {
    return isEnd(state) && this.isHidden(taskId, from) ? "running" : state;
  }

  /** true: some group has ended. */
  judge(instances: readonly ReferenceInstance[]): boolean {
    let hasEnded = false;
    for (const group of this.#groups) {
      const own = instances.filter(({ taskId }) => group.members.includes(taskId));
      const isOver = own.every(({ state }) => isEnd(state)) && !this.#hasOpenInside(group);
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

  /** Answers the instances that begin again. Groups inside those are new. */
  beginAgain(ids: readonly string[], instances: readonly ReferenceInstance[]): ReferenceInstance[] {
    const begun = this.#groups.filter(({ id }) => ids.includes(id));
    for (const group of begun) {
      group.state = "open";
      group.tries++;
      for (const inner of this.#groups) {
        if (!isInside(inner, group) || inner.state === "open") continue;
        Object.assign(inner, { state: "open", triesBefore: inner.tries, tries: inner.tries + 1 });
      }
    }
    return instances.filter(({ taskId }) => begun.some(({ members }) => members.includes(taskId)));
  }

  #hasOpenInside(group: ReferenceGroup): boolean {
    return this.#groups.some(
      (inner) => isInside(inner, group) && (inner.state === "open" || inner.state === "waiting"),
    );
  }

  /** Tasks of a group that no other of it comes after, teardowns left aside unless there is nothing else. */
  #last(members: readonly string[]): string[] {
    const own = this.#tasks.filter(({ taskId }) => members.includes(taskId));
    const last = (among: readonly TaskManifest[]) =>
      among.filter((task) => !among.some(({ upstream }) => upstream.includes(task.taskId)));
    const work = last(own.filter(({ role }) => role !== "teardown"));
    return (work.length > 0 ? work : last(own)).map(({ taskId }) => taskId);
  }
}

function isInside(inner: ReferenceGroup, outer: ReferenceGroup): boolean {
  return inner.around.includes(outer.id);
}
