/** The params of a DAG that is scheduled on assets: payloads are validated by the schemas of the assets. */
import type { AssetEvent } from "../../asset/asset.ts";
import type { StandardIssue, StandardSchemaV1 } from "../../check/standard-schema.ts";
import type { Json } from "../../manifest.ts";
import type { ConditionNode } from "../../schedule/condition.ts";

type Leaf = Extract<ConditionNode, { kind: "signal" }>;

/** A validator for `{ assetEvents }`; null if no asset has a schema. */
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

/** The events in the conf of a run, as stored. */
export function eventsIn(conf: Json): readonly AssetEvent[] {
  const events = isObject(conf) ? conf["assetEvents"] : undefined;
  return Array.isArray(events) ? (events as readonly unknown[] as readonly AssetEvent[]) : [];
}

/** Other members are not checked: the run may have been triggered manually. */
async function checked(schemas: ReadonlyMap<string, StandardSchemaV1>, conf: unknown) {
  if (!isObject(conf)) return { issues: [{ message: "conf must be an object" }] };
  const events = conf["assetEvents"];
  if (!Array.isArray(events)) return { value: conf };
  const issues: StandardIssue[] = [];
  const checkedEvents = await Promise.all(
    events.map(async (event: unknown, index) => {
      // Null: the producer gave no payload.
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
