/** The asset events of a successful task: the events that the task sent, plus one for each produced asset without any. */
import type { Json, TaskManifest } from "@tradewind/sdk/manifest";
import type { AssetSource } from "@tradewind/sdk/program";

/** The namespace of asset events; the key is the asset's URI. */
export const ASSETS = "asset";

/** The value of an asset event. */
export interface AssetNews {
  readonly payload: Json;
  readonly partition: string | null;
  readonly alias: string | null;
  /** null: the event was sent from outside. */
  readonly source: AssetSource | null;
}

/** A signal sent by a task. */
interface SentFact {
  readonly namespace: string;
  readonly key: string;
  readonly value: Json;
}

/** All signals of a success, in order. The engine sets the source of asset events and ignores the one given by the task. */
export function successSignals(
  { produces = [] }: Pick<TaskManifest, "produces">,
  told: readonly SentFact[],
  source: AssetSource,
): SentFact[] {
  const uris = new Set(told.filter(isOfAsset).map(({ key }) => key));
  const silent = produces.flatMap((each) => (each.kind === "asset" && !uris.has(each.uri) ? [each.uri] : []));
  return [
    ...told.map((signal) => (isOfAsset(signal) ? news(signal.key, signal.value, source) : signal)),
    ...silent.map((uri) => news(uri, null, source)),
  ];
}

/** Reads the value of an asset event. Missing or malformed members become null. */
export function assetNews(value: Json): AssetNews {
  const given = isObject(value) ? value : {};
  return {
    payload: given["payload"] ?? null,
    partition: textOf(given["partition"]),
    alias: textOf(given["alias"]),
    source: isObject(given["source"]) ? (given["source"] as unknown as AssetSource) : null,
  };
}

function news(uri: string, value: Json, source: AssetSource): SentFact {
  return { namespace: ASSETS, key: uri, value: { ...assetNews(value), source } as unknown as Json };
}

function isOfAsset({ namespace }: SentFact): boolean {
  return namespace === ASSETS;
}

function textOf(value: Json | undefined): string | null {
  return typeof value === "string" ? value : null;
}

function isObject(value: Json | undefined): value is Readonly<Record<string, Json>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
