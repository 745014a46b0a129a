/**
 * Maps: when the list of a map is known, each of its tasks becomes one instance per item. Until then a stand-in
 * ("unexpanded", map index below 0) represents them. It ends with the map if there is no list to run over.
 *
 * - A map of several tasks is expanded as soon as its source has succeeded. A map of a single task also waits for the
 *   trigger rule of that task, so that a task that will not run does not become 100,000 instances first.
 * - A long list is created in batches (`make`), and a map with a limit only up to its limit. Tasks that gather the instances
 *   know their number from the start.
 * - When the source starts again and none of the instances has started or ended, the map is collapsed: its next list may
 *   have another length. The tries continue: no two attempts at the same place have the same number.
 * - An instance of a labelled map gets its name from the caller that has the items (`takeUnlabelled`), before it is stored.
 */

import { type Scope, unexpandedIndex } from "../graph/scope.ts";
import { judge } from "../graph/trigger-rules.ts";
import { type Instance, isUnexpanded, newInstance } from "../run/instance.ts";
import type { InstanceTable, Slot, Spot } from "../run/instance-table.ts";
import type { RunEvent } from "../run/run-event.ts";
import { isFinished, type TaskState } from "../run/states.ts";
import type { Expansion, ExpansionRow, ScopePlace } from "./expansions.ts";
import { MAPPED_OVER_NOTHING } from "./input-reader.ts";

/** The changes of maps to store, before any other change of the same decision. */
export interface MapChanges {
  readonly opened: readonly ExpansionRow[];
  readonly closed: readonly { readonly mapId: string; readonly parent: number }[];
  /** Rows to delete. */
  readonly dropped: readonly { readonly taskId: string; readonly mapIndex: number }[];
  /** The deleted instances that occupied slots when they were last stored. */
  readonly released: readonly Instance[];
  /** The names of new instances. */
  readonly labels: readonly { readonly taskId: string; readonly mapIndex: number; readonly label: string }[];
}

type End = (instance: Instance, state: TaskState, reason: string) => void;

export class Mapping {
  readonly #table: InstanceTable;
  readonly #end: End;
  /** Maps that wait for their length: by scope, then by item of the parent. */
  readonly #requested: readonly Set<number>[];
  readonly #expandable: ScopePlace[] = [];
  /** Expansions without all their instances. */
  readonly #growing = new Set<Expansion>();
  /** For maps with a limit: the items that have not ended. */
  readonly #open = new Map<Expansion, Set<number>>();
  readonly #opened = new Map<Expansion, ExpansionRow>();
  #closed: MapChanges["closed"][number][] = [];
  #dropped: MapChanges["dropped"][number][] = [];
  #released: Instance[] = [];
  #labels: MapChanges["labels"][number][] = [];
  #unlabelled: Instance[] = [];
  /** By scope: the highest try of all collapsed instances. Ordinals are reused, also by other lists of the scope. */
  readonly #tries: number[];

  constructor(table: InstanceTable, end: End) {
    this.#table = table;
    this.#end = end;
    this.#requested = table.scopes.map(() => new Set());
    this.#tries = table.scopes.map(() => 0);
  }

  /** Call once after loading: every map is evaluated. */
  start(): void {
    for (const { due, scope } of this.#table.scopes) {
      if (scope.parent === null) due.add(-1);
      else for (const { base, made } of this.#table.expansions.of(scope.parent)) addRange(due, base, made);
      for (const expansion of this.#table.expansions.of(scope)) {
        this.#recordTries(scope, expansion.tries);
        if (expansion.made === expansion.length) continue;
        this.#growing.add(expansion);
        if (scope.limit === null) continue;
        this.#open.set(expansion, new Set(Array.from({ length: expansion.made }, (_, item) => item)));
      }
    }
    for (const { instances, node } of this.#table.slots) {
      for (const instance of node.scope ? instances : []) {
        if (isUnexpanded(instance)) this.#recordTries(node.scope!.chain[instance.level]!, instance.tryNumber);
        else if (instance.committed === null) this.#wantLabel(instance);
      }
    }
  }

  /** Whether any list lacks instances. */
  get isGrowing(): boolean {
    return this.#growing.size > 0;
  }

  evaluate(): void {
    for (const { due, scope } of this.#table.scopes) {
      for (const parent of due) {
        due.delete(parent);
        this.#judge({ scope, parent });
      }
    }
  }

  /** Whether the task's own rule is evaluated before its map is expanded. */
  isJudged({ level, node }: Instance): boolean {
    return node.scope!.chain[level]!.members.length === 1;
  }

  /** The rule allows the instance to run, or is not evaluated yet: the map decides. */
  leaveToMap(instance: Instance): void {
    const { level, node, ordinal } = instance;
    if (this.isJudged(instance)) this.#table.hold(instance, "expanding");
    this.#table.scopes[node.scope!.chain[level]!.index]!.due.add(ordinal);
  }

  /** Maps whose length is needed. Each waits for an answer. */
  drainExpandable(): ScopePlace[] {
    return this.#expandable
      .splice(0)
      .filter((place) => this.#requested[place.scope.index]!.has(place.parent));
  }

  /** The answer about a list. false: no answer was expected. */
  answer(event: Extract<RunEvent, { mapId: string }>): boolean {
    const scope = this.#table.scopes.find(({ scope: { id } }) => id === event.mapId)?.scope;
    if (!scope) return false;
    const place = { scope, parent: event.parent };
    return event.type === "expanded" ? this.#expand(place, event.length) : this.#refuse(place, event.reason);
  }

  #expand(place: ScopePlace, length: number): boolean {
    if (!this.#answer(place)) return false;
    if (length === 0) {
      this.#endAll(place, "skipped", MAPPED_OVER_NOTHING);
      return true;
    }
    const { scope, parent } = place;
    for (const unexpanded of this.#unexpanded(place)) this.#drop(unexpanded);
    const tries = this.#tries[scope.index]!;
    const expansion = this.#table.expansions.open(place, { length, tries });
    this.#table.expect(expansion, length);
    this.#growing.add(expansion);
    if (scope.limit !== null) this.#open.set(expansion, new Set());
    this.#opened.set(expansion, { mapId: scope.id, parent, base: expansion.base, length, tries });
    return true;
  }

  /** The list is missing or invalid. */
  #refuse(place: ScopePlace, reason: string): boolean {
    if (!this.#answer(place)) return false;
    this.#endAll(place, "upstream_failed", reason);
    return true;
  }

  /** Creates about `most` instances of expanded maps. Returns their number: 0 if none is left or there is no room. */
  make(most: number): number {
    let made = 0;
    for (const expansion of this.#growing) {
      if (made >= most) break;
      const { members } = expansion.scope;
      const wanted = Math.max(1, Math.floor((most - made) / members.length));
      const items = Math.min(wanted, expansion.length - expansion.made, this.#room(expansion));
      if (items === 0) continue;
      this.#make(expansion, items);
      made += items * members.length;
    }
    return made;
  }

  /** The remaining instances will not be created. */
  stopMaking(): void {
    for (const expansion of this.#growing) this.#table.expect(expansion, expansion.made - expansion.length);
    this.#growing.clear();
  }

  /** New instances of labelled maps: the caller sets the `label` of each, if it has one. */
  drainUnlabelled(): Instance[] {
    if (this.#unlabelled.length === 0) return [];
    return this.#unlabelled.splice(0).filter(({ position }) => position >= 0);
  }

  label({ mapIndex, node }: Instance, label: string): void {
    this.#labels.push({ taskId: node.id, mapIndex, label });
  }

  drainChanges(): MapChanges | null {
    const [closed, dropped] = [this.#closed, this.#dropped];
    if (this.#opened.size + closed.length + dropped.length + this.#labels.length === 0) return null;
    // Labels of instances that were dropped before they were stored are discarded.
    const labels = this.#labels.filter(({ mapIndex, taskId }) => this.#table.get(taskId, mapIndex));
    const changes = { opened: [...this.#opened.values()], closed, dropped, released: this.#released, labels };
    this.#opened.clear();
    this.#closed = [];
    this.#dropped = [];
    this.#released = [];
    this.#labels = [];
    return changes;
  }

  restoreChanges({ closed, dropped, labels, opened, released }: MapChanges): void {
    const scopes = new Map(this.#table.scopes.map(({ scope }) => [scope.id, scope]));
    for (const row of opened) {
      const expansion = this.#table.expansions.find({ scope: scopes.get(row.mapId)!, parent: row.parent });
      if (expansion) this.#opened.set(expansion, row);
    }
    this.#closed = [...closed, ...this.#closed];
    this.#dropped = [...dropped, ...this.#dropped];
    this.#released = [...released, ...this.#released];
    this.#labels = [...labels, ...this.#labels];
  }

  #judge(place: ScopePlace): void {
    const verdict = judge("allSuccess", this.#table.sourcesOf(place));
    const expansion = this.#table.expansions.find(place);
    if (expansion && verdict === "run") this.#spread(expansion);
    else if (verdict === "run") this.#requestLength(place);
    else {
      if (expansion) this.#fold(expansion);
      this.#answer(place);
      if (verdict !== "wait") this.#endAll(place, verdict, `source of the map: ${verdict}`);
    }
  }

  #requestLength(place: ScopePlace): void {
    const asked = this.#requested[place.scope.index]!;
    if (asked.has(place.parent)) return;
    const waiting = this.#unexpanded(place);
    if (!waiting.some((each) => each.gate === "expanding" || !this.isJudged(each))) return;
    asked.add(place.parent);
    this.#table.counts.held++;
    this.#expandable.push(place);
  }

  /** false: no answer was expected. */
  #answer({ scope, parent }: ScopePlace): boolean {
    const wasAsked = this.#requested[scope.index]!.delete(parent);
    if (wasAsked) this.#table.counts.held--;
    return wasAsked;
  }

  /** The stand-ins of its tasks that have not ended. */
  #unexpanded({ scope, parent }: ScopePlace): Instance[] {
    const spot = { level: scope.depth - 1, ordinal: parent };
    return this.#slots(scope.members).flatMap((slot) => {
      const standIn = this.#table.standIn(slot, spot);
      return standIn?.state === "pending" ? [standIn] : [];
    });
  }

  #endAll(place: ScopePlace, state: TaskState, reason: string): void {
    for (const instance of this.#unexpanded(place)) this.#end(instance, state, reason);
  }

  #make(expansion: Expansion, items: number): void {
    const { base, made, parent, scope } = expansion;
    const spot = { level: scope.depth - 1, ordinal: parent };
    expansion.made += items;
    this.#table.counts.unmade -= items;
    for (const slot of this.#slots(scope.members)) {
      if (this.#table.hasStandIn(slot, spot)) continue;
      // Edges that leave the scope counted these instances when it was expanded.
      const range = { level: scope.depth, first: base + made, count: items, tries: expansion.tries };
      this.#bear(slot, range, { from: scope.depth });
    }
    for (const child of scope.children) addRange(this.#table.scopes[child.index]!.due, base + made, items);
    const open = this.#open.get(expansion);
    if (open) addRange(open, made, items);
    if (expansion.made === expansion.length) this.#growing.delete(expansion);
  }

  #bear(slot: Slot, { level, first, count, tries }: Range, edges: { readonly from?: number }): void {
    const depth = slot.node.scope!.depth;
    const instances = Array.from({ length: count }, (_, index) => {
      const ordinal = first + index;
      const mapIndex = level === depth ? ordinal : unexpandedIndex(depth, level, ordinal);
      return newInstance(slot.node, mapIndex, tries);
    });
    this.#table.add(slot, instances, edges);
    for (const instance of instances) {
      this.#table.reconsiderOne(instance);
      if (level === depth) this.#wantLabel(instance);
    }
  }

  #wantLabel(instance: Instance): void {
    if (instance.node.scope!.isLabelled) this.#unlabelled.push(instance);
  }

  /** Also for inner maps: only the stand-in row remains of their instances. */
  #recordTries({ children, index }: Scope, tries: number): void {
    if (tries <= this.#tries[index]!) return;
    this.#tries[index] = tries;
    for (const child of children) this.#recordTries(child, tries);
  }

  /** How many more items may be active. */
  #room(expansion: Expansion): number {
    const open = this.#open.get(expansion);
    if (!open) return Number.POSITIVE_INFINITY;
    for (const item of open) {
      const spot = { level: expansion.scope.depth, ordinal: expansion.base + item };
      if (this.#isThrough(expansion, spot)) open.delete(item);
    }
    return Math.max(0, (expansion.scope.limit ?? 0) - open.size);
  }

  #isThrough({ scope }: Expansion, spot: Spot): boolean {
    if (this.#table.groups?.isWaitingIn(scope, spot.ordinal)) return false;
    for (const slot of this.#slots(scope.members)) {
      for (const { state } of this.#table.beneath(slot, spot)) if (!isFinished(state)) return false;
    }
    return true;
  }

  /** Expands a task that had been skipped for all items and is needed now. */
  #spread({ base, made, length, parent, scope, tries }: Expansion): void {
    for (const instance of this.#unexpanded({ scope, parent })) {
      this.#drop(instance);
      const slot = this.#table.slots[instance.node.index]!;
      this.#bear(slot, { level: scope.depth, first: base, count: made, tries }, {});
      this.#table.expectOf(slot, { scope, parent }, length - made);
    }
  }

  /** Collapses an expansion into stand-ins, unless any instance has started or ended. */
  #fold(expansion: Expansion): void {
    const { parent, scope } = expansion;
    const spot = { level: scope.depth - 1, ordinal: parent };
    const slots = this.#slots(scope.members).filter((slot) => !this.#table.hasStandIn(slot, spot));
    const instances: Instance[] = [];
    for (const slot of slots) {
      for (const instance of this.#table.beneath(slot, spot)) {
        if (instance.state !== "pending") return;
        instances.push(instance);
      }
    }
    if (instances.length === 0) return;
    for (const instance of instances) {
      this.#drop(instance);
      this.#recordTries(scope, instance.tryNumber);
    }
    this.#close(expansion);
    const range = { level: spot.level, first: spot.ordinal, count: 1, tries: this.#tries[scope.index]! };
    for (const slot of slots) this.#bear(slot, range, {});
  }

  #close(expansion: Expansion): void {
    const { base, length, made, parent, scope } = expansion;
    for (const child of scope.children) {
      for (let item = 0; item < made; item++) {
        const place = { scope: child, parent: base + item };
        this.#table.scopes[child.index]!.due.delete(place.parent);
        this.#answer(place);
        const inner = this.#table.expansions.find(place);
        if (inner) this.#close(inner);
      }
    }
    this.#table.groups?.renew(expansion);
    this.#table.expect(expansion, made - length);
    this.#growing.delete(expansion);
    this.#open.delete(expansion);
    this.#table.expansions.close(expansion);
    if (!this.#opened.delete(expansion)) this.#closed.push({ mapId: scope.id, parent });
  }

  #drop(instance: Instance): void {
    if (instance.committed !== null)
      this.#dropped.push({ taskId: instance.node.id, mapIndex: instance.mapIndex });
    if (instance.committedOccupying) this.#released.push(instance);
    this.#table.drop(instance);
  }

  #slots(members: readonly number[]): Slot[] {
    return members.map((index) => this.#table.slots[index]!);
  }
}

/** Items to create, at a nesting level. */
interface Range {
  readonly level: number;
  readonly first: number;
  readonly count: number;
  readonly tries: number;
}

function addRange(to: Set<number>, first: number, count: number): void {
  for (let index = 0; index < count; index++) to.add(first + index);
}
