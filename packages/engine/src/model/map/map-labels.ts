/** The name of a mapped instance: the label or the index of its item, for each map around it. */
import type { Json, MapLabel } from "@tradewind/sdk/manifest";
import { type Known, LargeValue } from "./large-value.ts";

/** Longer labels are cut. */
export const LONGEST_LABEL = 250;

/** Separates the maps around an instance: `2/0` is item 0 of the list in item 2. */
export const PATH_SEPARATOR = "/";

/** The name of an instance in one of the maps around it. */
export interface LabelPart {
  readonly index: number;
  /** null: named by its index. */
  readonly label: MapLabel | null;
  readonly item: Known | undefined;
}

/** From the outermost map to the innermost. `large` returns known large items; for unknown ones the index is used. */
export function nameOf(
  parts: readonly LabelPart[],
  large: (value: LargeValue) => Json | undefined = () => undefined,
): string {
  const shown = parts.map(({ index, item, label }) =>
    label === null ? index : (labelOf(label, filled(item, large, label)) ?? index),
  );
  return shorten(shown.join(PATH_SEPARATOR));
}

/** The large values that have to be read before an instance can be named. */
export function largeIn(parts: readonly LabelPart[]): LargeValue[] {
  const found: LargeValue[] = [];
  for (const { item, label } of parts) {
    if (label !== null) filled(item, (value) => void found.push(value), label);
  }
  return found;
}

/** Only lists created by the engine contain large values. Fills in the members that the label names. */
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

/** null: no field of the label has a text, so the index is the better name. */
export function labelOf(label: MapLabel, item: Json | undefined): string | null {
  const parts = label.map((part) => (typeof part === "string" ? part : textOf(fieldOf(item, part))));
  const hasField = parts.some((part, place) => typeof label[place] !== "string" && part !== "");
  return hasField ? shorten(oneLine(parts.join(""))) : null;
}

/** Own fields of the item only: a text has no fields, and none are inherited. */
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

/** Labels are shown in lists, and stored as text without NUL. */
function oneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\u2028\u2029]+/gu, " ").trim();
}

/** Does not cut surrogate pairs. */
function shorten(text: string): string {
  if (text.length <= LONGEST_LABEL) return text;
  return `${text.slice(0, LONGEST_LABEL - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}
