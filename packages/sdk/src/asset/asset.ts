/**
 * Assets: data with an address, that tasks produce and other DAGs are scheduled on. An asset is declared once and used
 * on both sides, so that the compiler compares them. What happens to it is a signal of the namespace "asset" whose key
 * is the address.
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

/** The namespace of signals that tell of assets. The engine alone writes it. */
export const ASSET_NAMESPACE = "asset";

/** Something that happened to an asset: a task has produced it, or somebody says that it has changed. */
export interface AssetEvent<Payload = Json> {
  /** Of later events of the same asset it is higher. */
  readonly id: number;
  readonly uri: string;
  /** What the producer said about it; null: nothing. */
  readonly payload: Payload | null;
  /** The part of the asset that it is about; null: the whole. */
  readonly partition: string | null;
  /** The alias under which it was produced, if any. */
  readonly alias: string | null;
  /** ISO instant. */
  readonly time: string;
  /** The task that produced it; null: it comes from outside. */
  readonly source: AssetSource | null;
}

export interface AssetSource {
  readonly dagId: string;
  readonly runId: string;
  readonly taskId: string;
  readonly mapIndex: number;
}

/** The params of a DAG that runs on assets; a run that somebody starts by hand may have none. */
export interface AssetParams<Event> {
  /** What has happened since the last run, in its order. Empty: its time has come, and nothing happened. */
  readonly assetEvents?: readonly Event[];
  /** With `partitioned`: the partition of all of them. */
  readonly partition?: string | null;
  /** Of a condition with a time: the latest moment that has come since the last run. */
  readonly time?: string;
}

declare const SENT: unique symbol;

type AssetNode = Extract<ConditionNode, { kind: "signal" }>;

/** What {@link asset} makes. `Sent` is what producers give, `Payload` what the schema makes of it for consumers. */
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
   * Whether an event is one of this asset, for the compiler too.
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

/** What {@link assetAlias} makes. */
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

/** Any asset, whatever its type. */
export interface AnyAsset extends Condition {
  readonly kind: "asset";
  readonly uri: string;
  readonly group: string;
  readonly description: string | null;
}

/** What `produces` takes. */
export type Producible = AnyAsset | AssetAlias;

export interface AssetOptions {
  /** Puts assets that belong together next to each other ("asset"). */
  readonly group?: string;
  readonly description?: string;
}

type PayloadIsJson<S extends StandardSchemaV1> = IsJson<SchemaInput<S>, "payload">;

/**
 * Declares an asset by its address, and by a schema or a type argument what its producers say about it. Nobody reads or
 * writes what is at the address but your tasks.
 *
 * @example
 * ```ts
 * const orders = asset("s3://shop/orders", { schema: z.object({ rows: z.number() }) });
 * d.task("export", { produces: [orders] }, (_, ctx) => ctx.produce(orders, { rows: 12 }, { partition: "2027-01-04" }));
 * dag("report", { schedule: on(orders) }, (d) => {
 *   d.task("sum", (_, ctx) => ctx.params.assetEvents?.map(({ payload }) => payload?.rows ?? 0) ?? skip("started by hand"));
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
 * Declares a name under which a task produces assets that are known only when it runs.
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

/** By shape: it may come from a package with its own copy of the SDK. */
export function isAsset(value: unknown): value is AnyAsset {
  return hasKind(value, "asset") && typeof (value as AnyAsset).uri === "string";
}

export function isAlias(value: unknown): value is AssetAlias {
  return hasKind(value, "assetAlias") && typeof (value as AssetAlias).name === "string";
}

/** The manifest's form of a task's `produces` or `consumes`. */
export function assetManifests(value: unknown, where: string): AssetManifest[] {
  const given: readonly unknown[] = Array.isArray(value) ? value : [value];
  const named = new Map<string, AssetManifest>();
  for (const each of given) {
    const manifest = assetManifest(each);
    if (manifest === null)
      throw bad(`${where} takes what asset() and assetAlias() return, got ${show(each)}`);
    named.set(manifest.kind === "asset" ? `asset ${manifest.uri}` : `alias ${manifest.name}`, manifest);
  }
  return [...named.values()];
}

/** null: it is neither an asset nor an alias. */
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
