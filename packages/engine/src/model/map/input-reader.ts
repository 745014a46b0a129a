/**
 * The inputs of an instance: outputs of its upstream, lists gathered from mapped tasks, and its map item. Reads the loaded
 * outputs and records the tasks whose outputs are not loaded. In that case the results are void: the caller loads the
 * outputs and reads again.
 */
import type { InputSource, MapSource } from "@tradewind/sdk/manifest";
import type { TaskNode } from "../graph/graph.ts";
import { commonDepth, type Scope, unexpandedIndex } from "../graph/scope.ts";
import type { Instance } from "../run/instance.ts";
import type { Spot } from "../run/instance-table.ts";
import type { RunModel } from "../run/run.ts";
import type { RunEvent } from "../run/run-event.ts";
import { isFinished } from "../run/states.ts";
import type { ScopePlace } from "./expansions.ts";
import { type Known, LargeValue } from "./large-value.ts";
import type { LabelPart } from "./map-labels.ts";

/** undefined: not loaded. A loaded task may have no output. */
export type OutputLookup = (
  taskId: string,
  mapIndex: number,
) => { readonly value: Known | undefined } | undefined;

/** The length of an item of a large list, if the item is a list itself; null: it is not a list; undefined: not known yet. */
export type LengthLookup = (value: LargeValue) => number | null | undefined;

/** An input with its state. Once it contains no large value, it is passed to the task as it is. */
export interface InputStanding {
  readonly state: "success" | "failed" | "skipped" | "upstream_failed" | "removed" | "pending";
  readonly value: Known | undefined;
  /** For a mapped upstream: each instance. */
  readonly each?: readonly InputStanding[];
}

/** A map cannot run over its source value. The message is for the author. */
class Unmappable extends Error {}

/** Default maximum length of a map: each item is a row and an instance in memory. */
const MAX_MAP_LENGTH = 100_000;

/** The code at the beginning of the reason. */
const UNUSABLE = "MAP_UNUSABLE";
/** The reason of the skipped instances of a map over an empty list. */
export const MAPPED_OVER_NOTHING = "mapped over an empty list";

/** Whether an instance ended with this reason because the list of its map was empty or invalid. */
export function isListEnd(reason: string | null): boolean {
  return reason === MAPPED_OVER_NOTHING || reason?.startsWith(`${UNUSABLE}:`) === true;
}

/** The event for a map whose source has succeeded. */
export function expansionOf(
  reader: InputReader,
  place: ScopePlace,
  most = MAX_MAP_LENGTH,
): Extract<RunEvent, { mapId: string }> {
  const key = { mapId: place.scope.id, parent: place.parent };
  try {
    const length = reader.length(place);
    if (length <= most) return { type: "expanded", ...key, length };
    const problem = `its list has ${length} items, more than the limit of ${most}; raise TRADEWIND_MAX_MAP_LENGTH`;
    return { type: "unmappable", ...key, reason: `${UNUSABLE}: ${problem}` };
  } catch (error) {
    if (!(error instanceof Unmappable)) throw error;
    return { type: "unmappable", ...key, reason: `${UNUSABLE}: ${error.message}` };
  }
}

export class InputReader {
  /** Tasks whose outputs are not loaded. */
  readonly missing = new Set<string>();
  /** Items of large lists whose length is not known yet. */
  readonly unmeasured: LargeValue[] = [];
  /** A value that was read is large. */
  hasLarge = false;
  readonly #model: RunModel;
  readonly #lookup: OutputLookup;
  readonly #lengthOf: LengthLookup;

  constructor(model: RunModel, lookup: OutputLookup, lengthOf: LengthLookup = () => undefined) {
    this.#model = model;
    this.#lookup = lookup;
    this.#lengthOf = lengthOf;
  }

  /** A value is missing: all results are void. */
  get isVoid(): boolean {
    return this.missing.size > 0 || this.unmeasured.length > 0;
  }

  input(source: InputSource, instance: Instance): InputStanding {
    const { level, node, ordinal } = instance;
    const scope = node.scope?.chain[level - 1] ?? null;
    if ("item" in source) return { state: "success", value: this.#itemAround(source.item, scope, ordinal) };
    const from = this.#node(source.taskId);
    if (!from) return { state: "pending", value: undefined };
    const common = commonDepth(from.scope, node.scope);
    const spot = { level: common, ordinal: this.#model.expansions.ancestor(scope, ordinal, common) };
    if ((from.scope?.depth ?? 0) === common) return this.#settledInput(from, spot.ordinal, node);
    return this.#gathered(from, spot, node);
  }

  /** The label parts of an instance, for all maps around it. */
  label({ node: { scope }, ordinal }: Instance): LabelPart[] {
    const { expansions } = this.#model;
    return (scope?.chain ?? []).map((each) => {
      const own = expansions.ancestor(scope, ordinal, each.depth);
      const index = own - expansions.around(each, own).base;
      const item = each.label === null ? undefined : this.#itemAround(each.id, scope, ordinal);
      return { index, item, label: each.label };
    });
  }

  /** The length of a map; throws for an invalid list (see {@link expansionOf}). */
  length({ scope, parent }: ScopePlace): number {
    return this.#length(scope.over, { level: scope.depth - 1, ordinal: parent }, scope.parent);
  }

  #length(over: MapSource, spot: Spot, around: Scope | null): number {
    switch (over.kind) {
      case "list":
        return over.items.length;
      case "item":
        return this.#lengthIn(
          this.#itemAround(over.mapId, around, spot.ordinal),
          `the item of "${over.mapId}"`,
        );
      case "output": {
        const { from, place } = this.#source(over.taskId, spot, around);
        if (place) return this.#model.expansions.find(place)?.length ?? 0;
        return this.#lengthIn(this.#outputAround(from, spot, around), `the output of "${from.id}"`);
      }
      case "zip": {
        const lengths = over.of.map((each) => this.#length(each, spot, around));
        if (!this.isVoid && new Set(lengths).size > 1)
          throw new Unmappable(
            `its lists have different lengths (${lengths.join(", ")}), but zip needs equal lengths`,
          );
        return lengths[0] ?? 0;
      }
      case "cross":
        return over.of.reduce((product, each) => product * this.#length(each, spot, around), 1);
    }
  }

  /** The item of an enclosing map. */
  #itemAround(mapId: string, scope: Scope | null, ordinal: number): Known | undefined {
    const map = scope?.chain.find(({ id }) => id === mapId);
    if (!map) return undefined;
    const own = this.#model.expansions.ancestor(scope, ordinal, map.depth);
    const { base, parent } = this.#model.expansions.around(map, own);
    return this.#item(map.over, own - base, { level: map.depth - 1, ordinal: parent }, map.parent);
  }

  #item(over: MapSource, index: number, spot: Spot, around: Scope | null): Known | undefined {
    switch (over.kind) {
      case "list":
        return over.items[index];
      case "item":
        return itemOf(this.#itemAround(over.mapId, around, spot.ordinal), index);
      case "output": {
        const { from, place } = this.#source(over.taskId, spot, around);
        const expansion = place && this.#model.expansions.find(place);
        if (!place) return itemOf(this.#outputAround(from, spot, around), index);
        if (!expansion) return undefined;
        const level = expansion.scope.depth;
        return this.#gathered(from, { level, ordinal: expansion.base + index }).value;
      }
      case "zip":
        return over.of.map((each) => this.#item(each, index, spot, around) ?? null);
      case "cross": {
        const members: Known[] = [];
        let rest = index;
        for (const each of [...over.of].reverse()) {
          const length = Math.max(1, this.#length(each, spot, around));
          members.unshift(this.#item(each, rest % length, spot, around) ?? null);
          rest = Math.floor(rest / length);
        }
        return members;
      }
    }
  }

  /** The list over a mapped task is that of its instances: `place` is their position. */
  #source(
    taskId: string,
    spot: Spot,
    around: Scope | null,
  ): { readonly from: TaskNode; readonly place: ScopePlace | null } {
    const from = this.#node(taskId)!;
    const common = commonDepth(from.scope, around);
    if ((from.scope?.depth ?? 0) === common) return { from, place: null };
    const parent = this.#model.expansions.ancestor(around, spot.ordinal, common);
    return { from, place: { scope: from.scope!.chain[common]!, parent } };
  }

  #outputAround(from: TaskNode, spot: Spot, around: Scope | null): Known | undefined {
    const depth = from.scope?.depth ?? 0;
    return this.#settledInput(from, this.#model.expansions.ancestor(around, spot.ordinal, depth)).value;
  }

  #lengthIn(value: Known | undefined, what: string): number {
    const length = this.#lengthKnown(value);
    if (length !== null) return length;
    if (this.isVoid) return 0;
    throw new Unmappable(`${what} is ${kindOf(value)}, but a map needs a list`);
  }

  /** null: not a list, or not known yet. */
  #lengthKnown(value: Known | undefined): number | null {
    if (Array.isArray(value)) return value.length;
    if (!(value instanceof LargeValue)) return null;
    if (value.path.length === 0) return value.reference.items;
    const length = this.#lengthOf(value);
    if (length === undefined) this.unmeasured.push(value);
    return length ?? null;
  }

  /** `to`: the task that receives the value. A task outside of a group sees no output of it before the group has ended. */
  #settledInput(from: TaskNode, mapIndex: number, to?: TaskNode): InputStanding {
    const instance = this.#model.get(from.id, mapIndex);
    const isHidden = instance && to && this.#model.groups?.isHiddenFrom(instance, to);
    const state = instance && isFinished(instance.state) && !isHidden ? instance.state : "pending";
    if (state !== "success") return { state: state as InputStanding["state"], value: undefined };
    const found = this.#lookup(from.id, mapIndex);
    if (!found) this.missing.add(from.id);
    else if (found.value instanceof LargeValue) this.hasLarge = true;
    return { state, value: found?.value };
  }

  /** The outputs of all instances in an item, in the order of the items; a list of lists if maps are nested. */
  #gathered(from: TaskNode, { level, ordinal }: Spot, to?: TaskNode): InputStanding {
    if (level === (from.scope?.depth ?? 0)) return this.#settledInput(from, ordinal, to);
    const expansion = this.#model.expansions.find({ scope: from.scope!.chain[level]!, parent: ordinal });
    const each = Array.from({ length: expansion?.made ?? 0 }, (_, index) =>
      this.#gathered(from, { level: level + 1, ordinal: expansion!.base + index }, to),
    );
    const standIn = this.#model.get(from.id, unexpandedIndex(from.scope!.depth, level, ordinal));
    const worst = standIn?.state ?? each.find(({ state }) => state !== "success")?.state ?? "success";
    return {
      state: worst as InputStanding["state"],
      value: each.map((one) => one.value ?? null),
      each,
    };
  }

  #node(taskId: string): TaskNode | undefined {
    return this.#model.graph.byId.get(taskId);
  }
}

function itemOf(list: Known | undefined, index: number): Known | undefined {
  if (list instanceof LargeValue) return list.item(index);
  return Array.isArray(list) ? (list as readonly Known[])[index] : undefined;
}

function kindOf(value: Known | undefined): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (value instanceof LargeValue) return "large but not a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
