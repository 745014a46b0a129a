/** The params of a DAG that runs on assets: the payloads of its events, checked by the schemas of the assets. */
import type { AssetEvent } from "../../asset/asset.ts";
import type { StandardIssue, StandardSchemaV1 } from "../../check/standard-schema.ts";
import type { Json } from "../../manifest.ts";
import type { ConditionNode } from "../../schedule/condition.ts";

type Leaf = Extract<ConditionNode, { kind: "signal" }>;

/** A validator for `{ assetEvents }`; null when none of the assets has a schema. */
export function assetParams(leaves: readonly Leaf[]): StandardSchemaV1 | null {
  const schemas = new Map<string, StandardSchemaV1>();
  for (const { leaf, schema } of leaves) if (schema !== null) schemas.set(leaf.key, schema);
  if (schemas.size === 0) return null;
  return Object.freeze({
    "~standard": {
      version: 1 as const,
      vendor: "tradewind",
      validate: (conf: unknown) => checked(schemas, conf),
    },
  });
}

/** The events in a run's conf, as they were stored. */
export function eventsIn(conf: Json): readonly AssetEvent[] {
  const events = isObject(conf) ? conf["assetEvents"] : undefined;
  return Array.isArray(events) ? (events as readonly unknown[] as readonly AssetEvent[]) : [];
}

/** Members that a schedule does not write are left as they are: the run may have been started by hand. */
async function checked(schemas: ReadonlyMap<string, StandardSchemaV1>, conf: unknown) {
  if (!isObject(conf)) return { issues: [{ message: "conf must be an object" }] };
  const events = conf["assetEvents"];
  if (!Array.isArray(events)) return { value: conf };
  const issues: StandardIssue[] = [];
  const checkedEvents = await Promise.all(
    events.map(async (event: unknown, index) => {
      // Null: nothing was said about it.
      if (!isObject(event) || event["payload"] === null) return event;
      const result = await schemas.get(String(event["uri"]))?.["~standard"].validate(event["payload"]);
      if (result === undefined) return event;
      if (!result.issues) return { ...event, payload: result.value };
      const at = ["assetEvents", String(index), "payload"];
      issues.push(...result.issues.map((issue) => ({ ...issue, path: [...at, ...(issue.path ?? [])] })));
      return event;
    }),
  );
  return issues.length > 0 ? { issues } : { value: { ...conf, assetEvents: checkedEvents } };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
