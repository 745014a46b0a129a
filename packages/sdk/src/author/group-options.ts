/**
 * Options of groups, and what a group with retries must look like: it runs again as one unit of work, so what is outside
 * of it sees how its tasks ended only when the whole group has. Whatever would have to see more is refused here.
 */

import { orElse } from "../check/definition-errors.ts";
import { DagDefinitionError, show } from "../check/errors.ts";
import { atLeast, duration, knownOptions, text } from "../check/option-check.ts";
import { GROUP_OPTION_NAMES } from "../check/option-names.ts";
import type { GroupManifest } from "../manifest.ts";
import { type CallbackOption, callbackOptions } from "../notify/notice.ts";
import type { AnyParams, GroupCallback } from "../runtime/context.ts";
import type { Duration } from "../schedule/duration.ts";
import { reactsOf } from "../signal/reaction.ts";
import type { Draft } from "./draft.ts";
import type { Upstream } from "./handle.ts";
import type { GroupPlan, TaskPlan } from "./plan.ts";
import type { RawOptions, TaskDefaults } from "./task-options.ts";

export interface GroupOptions<Params = AnyParams> {
  /** The group's first tasks come after these. */
  readonly after?: Upstream | readonly Upstream[];
  /** Options for all tasks of the group that do not say otherwise. */
  readonly defaults?: TaskDefaults<Params>;
  /**
   * How many times the whole group runs again when it has failed (0). Of a group that runs once per item, each item has
   * that many. Its tasks have retries of their own besides.
   */
  readonly retries?: number;
  /** The wait before it does ("5m"). */
  readonly retryDelay?: Duration;
  /** Called when the group has succeeded: once for all its items if it is mapped, or for each if it also has retries. */
  readonly onSuccess?: CallbackOption<GroupCallback<Params>>;
  /** Called when the group has failed and is not tried again. */
  readonly onFailure?: CallbackOption<GroupCallback<Params>>;
  /** Called when the group has failed and is tried again. */
  readonly onRetry?: CallbackOption<GroupCallback<Params>>;
  /** Markdown, shown in the UI. */
  readonly docs?: string;
}

/** Checks the names of a group's options; `extra` names those of a mapped one. */
export function checkGroupOptions(options: unknown, extra: readonly string[], where: string): RawOptions {
  return knownOptions(options, [...GROUP_OPTION_NAMES, ...extra], where, "group");
}

export function groupPlan(
  o: RawOptions,
  place: {
    readonly groupId: string;
    readonly parent: string | null;
    readonly map: string | null;
    readonly where: string;
  },
): GroupPlan {
  const { groupId, parent, map, where } = place;
  const { callbacks, functions, notices } = callbackOptions<GroupCallback<never>>(o, where);
  const retry = orElse(() => retryOf(o, map, where), undefined);
  const manifest: GroupManifest = {
    groupId,
    parent,
    docs: text(o, "docs", where),
    ...(retry && { retry }),
    ...(Object.values(callbacks).includes(true) && { callbacks }),
    ...notices,
  };
  return { manifest, callbacks: functions };
}

function retryOf(o: RawOptions, map: string | null, where: string): GroupManifest["retry"] {
  const retries = atLeast(o, "retries", { min: 0, fallback: 0 }, where);
  const delayMs = duration(o, "retryDelay", 300_000, where);
  if (retries === 0 && o["retryDelay"] !== undefined)
    throw bad(
      `${where}: retryDelay needs retries: how many times the group runs again (those of its tasks go into defaults)`,
    );
  return retries > 0 ? { retries, delayMs, ...(map !== null && { map }) } : undefined;
}

/** When the DAG is complete. */
export function checkGroups(draft: Draft): void {
  for (const { manifest } of draft.groups.values()) {
    if (!manifest.retry) continue;
    const where = `dag ${show(draft.dagId)}, group ${show(manifest.groupId)}`;
    const members = new Set(draft.members(manifest.groupId).map(({ taskId }) => taskId));
    for (const task of draft.members(manifest.groupId)) checkMember(task, where);
    for (const { body, taskId } of draft.tasks.values()) {
      if (body.kind !== "teardown" || members.has(taskId) === members.has(body.of)) continue;
      throw bad(
        `${where} has retries, and of the setup ${show(body.of)} and its teardown ${show(taskId)} it holds only one; put both into it, or both outside`,
      );
    }
    checkWayBack(draft, members, where);
  }
}

function checkMember(task: TaskPlan, where: string): void {
  const { every, lifetime, rules } = task.drive;
  const isDriven = every || rules || lifetime === "streaming" || reactsOf(task);
  if (isDriven)
    throw bad(
      `${where} has retries, and its task ${show(task.taskId)} is started or stopped by signals or times of its own; take it out of the group`,
    );
}

/** What is outside waits for the whole group: if the group waited for it in turn, neither would ever go on. */
function checkWayBack(draft: Draft, members: ReadonlySet<string>, where: string): void {
  const downstream = draft.downstream();
  const open = [...members].flatMap((id) => downstream.get(id)!.filter((next) => !members.has(next)));
  const seen = new Set(open);
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    for (const next of downstream.get(id)!) {
      if (members.has(next))
        throw bad(
          `${where} has retries, and its task ${show(next)} comes after ${show(id)}, which is outside and comes after the group itself; put ${show(id)} into the group`,
        );
      if (seen.has(next)) continue;
      seen.add(next);
      open.push(next);
    }
  }
}

function bad(message: string): DagDefinitionError {
  return new DagDefinitionError("TW_BAD_OPTION", message);
}
