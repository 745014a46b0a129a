/** The params of a DAG that is scheduled on signals: values are validated by the schemas of the signals. */

import type { StandardIssue, StandardSchemaV1 } from "../../check/standard-schema.ts";
import type { Json } from "../../manifest.ts";
import type { ConditionNode } from "../../schedule/condition.ts";
import { fitsPattern } from "../../signal/signal-names.ts";

type Leaf = Extract<ConditionNode, { kind: "signal" }>;

/** A validator for `{ signal, signals }`; null if no signal has a schema. */
export function signalParams(leaves: readonly Leaf[]): StandardSchemaV1 | null {
  if (leaves.every(({ schema }) => schema === null)) return null;
  return Object.freeze({
    "~standard": {
      version: 1 as const,
      vendor: "tradewind",
      validate: (conf: unknown) => checked(leaves, conf),
    },
  });
}

/** Other members are not checked: the run may have been triggered manually. */
async function checked(leaves: readonly Leaf[], conf: unknown) {
  if (!isObject(conf)) return { issues: [{ message: "conf must be an object" }] };
  const issues: StandardIssue[] = [];
  const params: Record<string, unknown> = { ...conf };
  const check = async (event: Json | undefined, path: readonly string[]): Promise<unknown> => {
    if (!isObject(event)) return event;
    const leaf = leaves.find(({ leaf }) => fitsPattern(leaf.key, String(event["key"])));
    const result = await leaf?.schema?.["~standard"].validate(event["value"]);
    if (result === undefined) return event;
    if (!result.issues) return { ...event, value: result.value };
    issues.push(
      ...result.issues.map((issue) => ({ ...issue, path: [...path, "value", ...(issue.path ?? [])] })),
    );
    return event;
  };
  if (conf["signal"] !== undefined) params["signal"] = await check(conf["signal"], ["signal"]);
  if (isObject(conf["signals"])) {
    const entries = Object.entries(conf["signals"]).map(async ([key, event]) => [
      key,
      await check(event, ["signals", key]),
    ]);
    params["signals"] = Object.fromEntries(await Promise.all(entries));
  }
  return issues.length > 0 ? { issues } : { value: params };
}

function isObject(value: unknown): value is Readonly<Record<string, Json | undefined>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
