/** The condition of an asset schedule in the form of Airflow's API. */
import type { AssetManifest, Json, ScheduleManifest, SignalCondition } from "@tradewind/sdk/manifest";

/** null: not an asset schedule. */
export function assetExpression(schedule: ScheduleManifest | undefined): { [key: string]: Json } | null {
  if (schedule?.kind !== "signal" || schedule.gather === undefined) return null;
  const { assets, time } = schedule.gather;
  return written(schedule.when, { assets, time: (time ?? null) as Json });
}

export function isPartitioned(schedule: ScheduleManifest | undefined): boolean {
  return schedule?.kind === "signal" && schedule.gather?.partitioned === true;
}

interface Named {
  readonly assets: readonly AssetManifest[];
  readonly time: Json;
}

function written(condition: SignalCondition, named: Named): { [key: string]: Json } {
  if (condition.kind === "task") return { task: condition.taskId };
  if (condition.kind !== "signal")
    return { [condition.kind]: condition.of.map((each) => written(each, named)) };
  if (condition.namespace === "schedule") return { time: named.time };
  const alias = (condition.where as { readonly alias?: string } | null)?.alias;
  const found = named.assets.find((each) =>
    each.kind === "asset" ? each.uri === condition.key : each.name === alias,
  );
  if (alias !== undefined) return { alias: { name: alias, group: found?.group ?? "asset" } };
  return { asset: { uri: condition.key, name: condition.key, group: found?.group ?? "asset" } };
}
