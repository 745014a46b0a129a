/** What starts and stops a task besides its upstream: signal rules, its lifetime, and times of its own. */
import { orElse, refuse } from "../check/definition-errors.ts";
import { DagDefinitionError, show } from "../check/errors.ts";
import { choice, definedOnly } from "../check/option-check.ts";
import type { ScheduleManifest, TaskManifest } from "../manifest.ts";
import { durationMs } from "../schedule/duration.ts";
import { every, scheduleManifest } from "../schedule/schedule.ts";
import type { AnyOutput } from "./handle.ts";
import type { TaskDrive } from "./plan.ts";
import { ruleManifests } from "./rule.ts";
import { type RawOptions, taskTimes } from "./task-options.ts";

/** Contains only the given options, so that the manifests of other tasks do not change. */
export function taskDrive(
  layers: readonly RawOptions[],
  task: {
    readonly where: string;
    readonly hasCode: boolean;
    readonly isMapped: boolean;
    readonly taskOf: (handle: AnyOutput) => string;
  },
): TaskDrive {
  const { where } = task;
  const o: RawOptions = Object.assign({}, ...layers.map(definedOnly));
  const lifetime = choice(o, "lifetime", ["batch", "streaming"], where);
  if (lifetime === "streaming" && !task.hasCode) {
    refuse(bad(`${where}: a trigger runs no code and cannot stream; remove lifetime`));
  }
  const driven = ["on", "every"].find((name) => o[name] !== undefined);
  if (task.isMapped && (driven !== undefined || lifetime === "streaming")) {
    refuse(bad(`${where}: a task in a map takes no ${driven ?? "lifetime"}; use a task outside of the map`));
  }
  const rules = orElse(() => ruleManifests(o["on"], where, task.taskOf), undefined);
  const times = orElse(
    () => (o["every"] === undefined ? undefined : timesOf(o["every"], `${where}: every`)),
    undefined,
  );
  return {
    ...(rules && { rules }),
    ...(lifetime === "streaming" && { lifetime }),
    ...taskTimes(o, where),
    ...(times && { every: times }),
  };
}

/** A duration, or a schedule of times. */
function timesOf(given: unknown, where: string): NonNullable<TaskManifest["every"]> {
  const schedule: ScheduleManifest =
    typeof given === "number" || typeof given === "string"
      ? every(durationMs(given, where))
      : scheduleManifest(given, where);
  if ((schedule.kind === "cron" || schedule.kind === "interval") && schedule.style === "trigger") {
    return schedule;
  }
  throw bad(`${where} must be a duration like "10m", every() or cron(), without a style, got ${show(given)}`);
}

function bad(message: string): DagDefinitionError {
  return new DagDefinitionError("TW_BAD_OPTION", message);
}
