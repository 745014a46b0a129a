/** What a task's success says about assets: what the task itself has told, and one event for each asset it has not. */
import type { Json, TaskManifest } from "@tradewind/sdk/manifest";

/** The namespace of signals that tell of assets; the key is the address. */
export const ASSETS = "asset";

/** The value of such a signal. */
export interface AssetNews {
  readonly payload: Json;
  readonly partition: string | null;
  readonly alias: string | null;
  /** null: it comes from outside. */
  readonly source: AssetSource | null;
}

export interface AssetSource {
  readonly dagId: string;
  readonly runId: string;
  readonly taskId: string;
  readonly mapIndex: number;
}

/** A signal that a task sends. */
interface Told {
  readonly namespace: string;
  readonly key: string;
  readonly value: Json;
}

/** All signals of a success, in order. Where they come from is the engine's word, whatever the task says. */
export function successSignals(
  { produces = [] }: Pick<TaskManifest, "produces">,
  told: readonly Told[],
  source: AssetSource,
): Told[] {
  const uris = new Set(told.filter(isOfAsset).map(({ key }) => key));
  const silent = produces.flatMap((each) => (each.kind === "asset" && !uris.has(each.uri) ? [each.uri] : []));
  return [
    ...told.map((signal) => (isOfAsset(signal) ? news(signal.key, signal.value, source) : signal)),
    ...silent.map((uri) => news(uri, null, source)),
  ];
}

/** What a value of the log says about an asset; what it does not say is nothing. */
export function assetNews(value: Json): AssetNews {
  const given = isObject(value) ? value : {};
  return {
    payload: given["payload"] ?? null,
    partition: textOf(given["partition"]),
    alias: textOf(given["alias"]),
    source: isObject(given["source"]) ? (given["source"] as unknown as AssetSource) : null,
  };
}

function news(uri: string, value: Json, source: AssetSource): Told {
  return { namespace: ASSETS, key: uri, value: { ...assetNews(value), source } as unknown as Json };
}

function isOfAsset({ namespace }: Told): boolean {
  return namespace === ASSETS;
}

function textOf(value: Json | undefined): string | null {
  return typeof value === "string" ? value : null;
}

function isObject(value: Json | undefined): value is Readonly<Record<string, Json>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
