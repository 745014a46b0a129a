/** What an instance of a map is called: the label of its item, or the item's index, for each map around it. */
import type { Json, MapLabel } from "@tradewind/sdk/manifest";
import { type Known, LargeValue } from "./large-value.ts";

/** Longer ones are cut. */
export const LONGEST_LABEL = 250;

/** Between the maps around an instance: `2/0` is item 0 of the list in item 2. */
export const PATH_SEPARATOR = "/";

/** One of the maps around an instance: what it is called there. */
export interface LabelPart {
  readonly index: number;
  /** null: by its index. */
  readonly label: MapLabel | null;
  readonly item: Known | undefined;
}

/** From the outermost map to the innermost. `large`: what is known of large items; of the others the index is shown. */
export function nameOf(
  parts: readonly LabelPart[],
  large: (value: LargeValue) => Json | undefined = () => undefined,
): string {
  const shown = parts.map(({ index, item, label }) =>
    label === null ? index : (labelOf(label, filled(item, large, label)) ?? index),
  );
  return shorten(shown.join(PATH_SEPARATOR));
}

/** What has to be read before an instance can be named. */
export function largeIn(parts: readonly LabelPart[]): LargeValue[] {
  const found: LargeValue[] = [];
  for (const { item, label } of parts) {
    if (label !== null) filled(item, (value) => void found.push(value), label);
  }
  return found;
}

/** Only lists that the engine has made have large values in them. Of their members, those that the label names. */
function filled(
  item: Known | undefined,
  large: (value: LargeValue) => Json | undefined,
  label: MapLabel = [[]],
): Json | undefined {
  if (item instanceof LargeValue) return large(item);
  if (!Array.isArray(item)) return item as Json | undefined;
  const isWanted = (index: number) =>
    label.some((part) => typeof part !== "string" && (part[0] ?? `${index}`) === `${index}`);
  return item.map((each: Known, index) => (isWanted(index) ? (filled(each, large) ?? null) : null));
}

/** null: nothing of the item has a text, so that its index says more. */
export function labelOf(label: MapLabel, item: Json | undefined): string | null {
  const parts = label.map((part) => (typeof part === "string" ? part : textOf(fieldOf(item, part))));
  const hasField = parts.some((part, place) => typeof label[place] !== "string" && part !== "");
  return hasField ? shorten(oneLine(parts.join(""))) : null;
}

/** Only what the item itself has: a text has no fields, and nothing is inherited. */
function fieldOf(item: Json | undefined, path: readonly string[]): Json | undefined {
  let at = item;
  for (const key of path) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, key)) return undefined;
    at = (at as Readonly<Record<string, Json>>)[key];
  }
  return at;
}

function textOf(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** It is shown in lists, and stored as text, which has no room for a NUL. */
function oneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ").trim();
}

/** Never in the middle of a character of two units. */
function shorten(text: string): string {
  if (text.length <= LONGEST_LABEL) return text;
  return `${text.slice(0, LONGEST_LABEL - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}
