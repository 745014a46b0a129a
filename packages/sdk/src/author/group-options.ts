/**
 * Options of groups, and the checks of groups with retries. A group with retries runs again as one unit, so tasks
 * outside of it see the states of its tasks only after the whole group has ended. Anything that needs to see more is
 * rejected here.
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

/**
 * Options of a group.
 * @example d.group("load", { after: rows, retries: 2, defaults: { pool: "warehouse" } }, (g) => g.task("copy", () => 1));
 */
export interface GroupOptions<Params = AnyParams> {
  /** The tasks and groups upstream of the group's first tasks. */
  readonly after?: Upstream | readonly Upstream[];
  /** Default options of all tasks in the group. */
  readonly defaults?: TaskDefaults<Params>;
  /** How many times the whole group, or each item of a mapped group, is retried (default 0). */
  readonly retries?: number;
  /** The delay before a retry of the group (default "5m"). */
  readonly retryDelay?: Duration;
  /**
   * Functions to call and notices to send after the group has succeeded; for each item if the group is mapped and has
   * retries.
   */
  readonly onSuccess?: CallbackOption<GroupCallback<Params>>;
  /** Functions to call and notices to send after the group has failed without a retry left. */
  readonly onFailure?: CallbackOption<GroupCallback<Params>>;
  /** Functions to call and notices to send before the group is retried. */
  readonly onRetry?: CallbackOption<GroupCallback<Params>>;
  /** Markdown for the UI. */
  readonly docs?: string;
}

/** Checks the names of a group's options; `extra` names the options of a mapped group. */
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
      `${where}: retryDelay needs retries: how many times the group runs again (retries of its tasks belong in defaults)`,
    );
  return retries > 0 ? { retries, delayMs, ...(map !== null && { map }) } : undefined;
}

/** Called when the DAG is complete. */
export function checkGroups(draft: Draft): void {
  for (const { manifest } of draft.groups.values()) {
    if (!manifest.retry) continue;
    const where = `dag ${show(draft.dagId)}, group ${show(manifest.groupId)}`;
    const members = new Set(draft.members(manifest.groupId).map(({ taskId }) => taskId));
    for (const task of draft.members(manifest.groupId)) checkMember(task, where);
    for (const { body, taskId } of draft.tasks.values()) {
      if (body.kind !== "teardown" || members.has(taskId) === members.has(body.of)) continue;
      throw bad(
        `${where} has retries, but contains only one of the setup ${show(body.of)} and its teardown ${show(taskId)}; put both inside, or both outside`,
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
      `${where} has retries, but its task ${show(task.taskId)} has signal rules or times of its own; move the task out of the group`,
    );
}

/** Tasks outside wait for the whole group: if the group waits for one of them, neither can continue. */
function checkWayBack(draft: Draft, members: ReadonlySet<string>, where: string): void {
  const downstream = draft.downstream();
  const open = [...members].flatMap((id) => downstream.get(id)!.filter((next) => !members.has(next)));
  const seen = new Set(open);
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    for (const next of downstream.get(id)!) {
      if (members.has(next))
        throw bad(
          `${where} has retries, but its task ${show(next)} depends on ${show(id)} outside, which depends on the group itself; put ${show(id)} into the group`,
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
