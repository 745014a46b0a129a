/**
 * Assets: data with an address that tasks produce and other DAGs are scheduled on. Producers and consumers share one
 * declaration, so the compiler checks both. An asset event is a signal in the namespace "asset"; its key is the
 * address.
 */

import { DagDefinitionError, show } from "../check/errors.ts";
import type { IsJson } from "../check/json.ts";
import { knownOptions, text } from "../check/option-check.ts";
import {
  isStandardSchema,
  type SchemaInput,
  type SchemaOutput,
  type StandardSchemaV1,
} from "../check/standard-schema.ts";
import type { AssetManifest, Json, SignalCondition } from "../manifest.ts";
import { CONDITION, type Condition, type ConditionNode, type VALUE } from "../schedule/condition.ts";

/** The namespace of asset events; only the engine writes to it. */
export const ASSET_NAMESPACE = "asset";

/**
 * An event of an asset: a task produced the asset, or an external program reported a change.
 * @example d.task("log", (_, ctx) => ctx.assetEvents.forEach((event: AssetEvent) => ctx.log.info(event.uri, { by: event.source })));
 */
export interface AssetEvent<Payload = Json> {
  /** Grows with each event of the same asset. */
  readonly id: number;
  readonly uri: string;
  /** The payload given by the producer, or null. */
  readonly payload: Payload | null;
  /** The partition of the asset that changed, or null for the whole asset. */
  readonly partition: string | null;
  /** The alias under which the asset was produced, or null. */
  readonly alias: string | null;
  /** An ISO instant. */
  readonly time: string;
  /** The task that produced the asset, or null for an external event. */
  readonly source: AssetSource | null;
}

/**
 * The task instance that produced an asset.
 * @example const describe = (source: AssetSource) => `${source.dagId}/${source.runId}/${source.taskId}`;
 */
export interface AssetSource {
  readonly dagId: string;
  readonly runId: string;
  readonly taskId: string;
  readonly mapIndex: number;
}

/**
 * The params of a DAG that is scheduled on assets; all fields are missing in a run that was triggered manually.
 * @example const uris = (params: AssetParams<AssetEvent>) => params.assetEvents?.map(({ uri }) => uri) ?? [];
 */
export interface AssetParams<Event> {
  /** The events since the last run, in order; empty if only the time of the schedule was reached. */
  readonly assetEvents?: readonly Event[];
  /** The partition of all events of the run, with `partitioned`. */
  readonly partition?: string | null;
  /** The latest time that was reached since the last run, for a condition with a time. */
  readonly time?: string;
}

declare const SENT: unique symbol;

type AssetNode = Extract<ConditionNode, { kind: "signal" }>;

/**
 * The type of {@link asset}: producers pass a `Sent`, consumers receive the `Payload` that the schema makes of it.
 * @example const orders: Asset<{ rows: number }> = asset<{ rows: number }>("s3://shop/orders");
 */
export class Asset<Payload = Json, Sent = Payload> implements Condition<AssetEvent<Payload>> {
  declare readonly [VALUE]?: AssetEvent<Payload>;
  declare readonly [SENT]?: Sent;
  readonly kind = "asset";
  readonly uri: string;
  readonly group: string;
  readonly description: string | null;
  readonly [CONDITION]: AssetNode;

  constructor(manifest: Extract<AssetManifest, { kind: "asset" }>, schema: StandardSchemaV1 | null) {
    this.uri = manifest.uri;
    this.group = manifest.group;
    this.description = manifest.description;
    this[CONDITION] = Object.freeze({ kind: "signal", leaf: leaf(manifest.uri, null), schema });
    Object.freeze(this);
  }

  /**
   * Returns whether an event belongs to this asset, and narrows its type.
   *
   * @example
   * ```ts
   * const orders = asset("s3://shop/orders", { schema: z.object({ rows: z.number() }) });
   * d.task("count", (_, ctx) => ctx.assetEvents.reduce((sum, each) => sum + (orders.is(each) ? (each.payload?.rows ?? 0) : 0), 0));
   * ```
   */
  is<E extends AssetEvent<unknown>>(event: E): event is E & AssetEvent<Payload> {
    return event.uri === this.uri;
  }
}

/**
 * The type of {@link assetAlias}.
 * @example const daily: AssetAlias = assetAlias("daily");
 */
export class AssetAlias implements Condition<AssetEvent> {
  declare readonly [VALUE]?: AssetEvent;
  readonly kind = "assetAlias";
  readonly name: string;
  readonly group: string;
  readonly [CONDITION]: AssetNode;

  constructor({ group, name }: Extract<AssetManifest, { kind: "alias" }>) {
    this.name = name;
    this.group = group;
    this[CONDITION] = Object.freeze({ kind: "signal", leaf: leaf("*", { alias: name }), schema: null });
    Object.freeze(this);
  }
}

/**
 * An asset of any type.
 * @example const uris = (assets: AnyAsset[]) => assets.map(({ uri }) => uri);
 */
export interface AnyAsset extends Condition {
  readonly kind: "asset";
  readonly uri: string;
  readonly group: string;
  readonly description: string | null;
}

/**
 * An asset or an alias, for the option `produces`.
 * @example const produces: Producible[] = [asset("s3://shop/orders"), assetAlias("daily")];
 */
export type Producible = AnyAsset | AssetAlias;

/**
 * Options of {@link asset}.
 * @example const options: AssetOptions = { group: "shop", description: "One file per day." };
 */
export interface AssetOptions {
  /** The group under which the asset is listed (default "asset"). */
  readonly group?: string;
  readonly description?: string;
}

type PayloadIsJson<S extends StandardSchemaV1> = IsJson<SchemaInput<S>, "payload">;

/**
 * Declares an asset by its address; a schema or a type argument gives the type of its payloads.
 * @see docs/guides/assets.md
 *
 * @example
 * ```ts
 * const orders = asset("s3://shop/orders", { schema: z.object({ rows: z.number() }) });
 * d.task("export", { produces: [orders] }, (_, ctx) => ctx.produce(orders, { rows: 12 }, { partition: "2027-01-04" }));
 * dag("report", { schedule: on(orders) }, (d) => {
 *   d.task("sum", (_, ctx) => ctx.params.assetEvents?.map(({ payload }) => payload?.rows ?? 0) ?? skip("triggered manually"));
 * });
 * ```
 */
export function asset<T = Json>(
  uri: string,
  options?: AssetOptions & { readonly schema?: undefined },
): Asset<T>;
export function asset<S extends StandardSchemaV1>(
  uri: string,
  options: AssetOptions & { readonly schema: S & PayloadIsJson<S> },
): Asset<SchemaOutput<S>, SchemaInput<S>>;
export function asset(uri: string, options?: AssetOptions & { readonly schema?: unknown }): Asset {
  const where = `asset(${show(uri)})`;
  const o = knownOptions(options, ["schema", "group", "description"], where);
  const schema = o["schema"];
  if (schema !== undefined && !isStandardSchema(schema)) {
    throw bad(
      `${where}: the schema must be a Standard Schema validator, e.g. z.object({...}), got ${show(schema)}`,
    );
  }
  const group = text(o, "group", where) ?? DEFAULT_GROUP;
  const description = text(o, "description", where);
  return new Asset({ kind: "asset", uri: checkedUri(uri), group, description }, schema ?? null);
}

/**
 * Declares a name for assets whose addresses are known only when the task runs.
 *
 * @example
 * ```ts
 * const daily = assetAlias("daily");
 * d.task("export", { produces: [daily] }, (_, ctx) => ctx.produce(daily, asset(`s3://shop/${ctx.run.id}`), null));
 * dag("check", { schedule: on(daily) }, build);
 * ```
 */
export function assetAlias(name: string, options?: { readonly group?: string }): AssetAlias {
  const where = `assetAlias(${show(name)})`;
  const o = knownOptions(options, ["group"], where);
  return new AssetAlias({
    kind: "alias",
    name: checkedAlias(name),
    group: text(o, "group", where) ?? DEFAULT_GROUP,
  });
}

/** Compares the shape, not the class: an asset may come from another copy of the SDK. */
export function isAsset(value: unknown): value is AnyAsset {
  return hasKind(value, "asset") && typeof (value as AnyAsset).uri === "string";
}

export function isAlias(value: unknown): value is AssetAlias {
  return hasKind(value, "assetAlias") && typeof (value as AssetAlias).name === "string";
}

/** The manifest form of a task's `produces` or `consumes`. */
export function assetManifests(value: unknown, where: string): AssetManifest[] {
  const given: readonly unknown[] = Array.isArray(value) ? value : [value];
  const named = new Map<string, AssetManifest>();
  for (const each of given) {
    const manifest = assetManifest(each);
    if (manifest === null) throw bad(`${where} takes results of asset() and assetAlias(), got ${show(each)}`);
    named.set(manifest.kind === "asset" ? `asset ${manifest.uri}` : `alias ${manifest.name}`, manifest);
  }
  return [...named.values()];
}

/** Returns null if the value is neither an asset nor an alias. */
export function assetManifest(value: unknown): AssetManifest | null {
  if (isAsset(value)) {
    const { description, group, uri } = value;
    return { kind: "asset", uri, group, description };
  }
  return isAlias(value) ? { kind: "alias", name: value.name, group: value.group } : null;
}

const DEFAULT_GROUP = "asset";
const MAX_LENGTH = 500;

function leaf(key: string, where: Json | null): Extract<SignalCondition, { kind: "signal" }> {
  return Object.freeze({
    kind: "signal",
    namespace: ASSET_NAMESPACE,
    key,
    where,
    equals: null,
    inRun: false,
  });
}

function hasKind(value: unknown, kind: string): boolean {
  const isObject = typeof value === "object" && value !== null;
  return isObject && (value as { readonly kind?: unknown }).kind === kind && CONDITION in value;
}

function checkedUri(uri: unknown): string {
  if (isName(uri)) return uri;
  throw bad(
    `asset(): an address has 1 to ${MAX_LENGTH} characters, no "*" and no control characters, got ${show(uri)}`,
  );
}

function checkedAlias(name: unknown): string {
  if (isName(name)) return name;
  throw bad(
    `assetAlias(): a name has 1 to ${MAX_LENGTH} characters, no "*" and no control characters, got ${show(name)}`,
  );
}

function isName(value: unknown): value is string {
  const isText = typeof value === "string" && value.length >= 1 && value.length <= MAX_LENGTH;
  return isText && value.isWellFormed() && !/[*\p{Cc}]/u.test(value);
}

function bad(message: string): DagDefinitionError {
  return new DagDefinitionError("TW_BAD_ASSET", message);
}
