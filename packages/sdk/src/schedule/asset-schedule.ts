/** `on()` for conditions on assets: events are collected until a run is created from them. */
import { ASSET_NAMESPACE, assetManifest } from "../asset/asset.ts";
import { assetParams } from "../author/params/asset-params.ts";
import { DagDefinitionError } from "../check/errors.ts";
import { choice, flag, knownOptions } from "../check/option-check.ts";
import type { StandardSchemaV1 } from "../check/standard-schema.ts";
import type { AssetManifest, GatherManifest, ScheduleManifest, SignalCondition } from "../manifest.ts";
import {
  CONDITION,
  type ConditionPart,
  conditionManifest,
  isCondition,
  leavesOf,
  noTasks,
  type TimePart,
} from "./condition.ts";

/**
 * Options of {@link on} for assets.
 * @example dag("report", { schedule: on(asset("s3://shop/orders"), { each: "event" } satisfies AssetScheduleOptions) }, build);
 */
export interface AssetScheduleOptions {
  /**
   * "batch": one run for all events until the run is created; "event": one run each time the condition becomes true
   * (default "batch").
   */
  readonly each?: "batch" | "event";
  /** Create one run per partition, with its key in `ctx.params.partition` (default false). */
  readonly partitioned?: boolean;
}

type SignalManifest = Extract<ScheduleManifest, { kind: "signal" }>;

/** The leaf that stands for the DAG's own times. */
const TIME: SignalCondition = Object.freeze({
  kind: "signal",
  namespace: "schedule",
  key: "",
  where: null,
  equals: null,
  inRun: false,
});

export function onAssets(
  condition: ConditionPart,
  options: unknown,
  checkedTime: (time: TimePart, where: string) => TimePart,
): { readonly schedule: SignalManifest; readonly params: StandardSchemaV1 | null } {
  const where = "on()";
  const o = knownOptions(options, ["each", "partitioned"], where);
  let time: TimePart | undefined;
  const when = conditionManifest(condition, where, noTasks(where), (given) => {
    if (time !== undefined) throw bad("a condition has one time; put them into one cron expression");
    if (given.style !== "trigger") throw bad('a time that is part of a condition has the style "trigger"');
    time = checkedTime(given, where);
    return TIME;
  });
  const leaves = leavesOf(condition);
  if (leaves.some(({ leaf }) => leaf.namespace !== ASSET_NAMESPACE)) {
    throw bad(
      "assets and other signals cannot be parts of one condition; let the task that sends it produce an asset",
    );
  }
  const partitioned = flag(o, "partitioned", where);
  if (partitioned && time !== undefined) {
    throw bad("a time belongs to no partition; leave `partitioned` out, or the time");
  }
  const gather: GatherManifest = {
    each: choice(o, "each", ["batch", "event"], where),
    partitioned,
    assets: assetsOf(condition),
    ...(time !== undefined && { time }),
  };
  return { schedule: { kind: "signal", when, route: null, gather }, params: assetParams(leaves) };
}

function assetsOf(part: ConditionPart): AssetManifest[] {
  const named = assetManifest(part);
  if (named !== null) return [named];
  if (!isCondition(part)) return [];
  const node = part[CONDITION];
  if (node.kind === "signal") return [];
  const all = node.of.flatMap(assetsOf);
  return [...new Map(all.map((each) => [JSON.stringify(each), each])).values()];
}

function bad(problem: string): DagDefinitionError {
  return new DagDefinitionError("TW_BAD_SCHEDULE", `on(): ${problem}`);
}
