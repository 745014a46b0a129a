/**
 * Maps: when the list is known that one runs over, each of its tasks becomes one instance per item. What stands for
 * them until then ("unexpanded", map index below 0) is ended with the map when there is nothing to run over.
 *
 * - A map of several tasks is expanded as soon as its source has succeeded; a map of a single task also waits for the
 *   trigger rule of that task, so that what is not going to run does not become 100,000 instances first.
 * - A long list is made piece by piece (`make`), and one with a limit only as far as the limit goes; what gathers the
 *   instances knows from the beginning how many there will be.
 * - When the source begins again and none of the instances has, the map is folded up again: its next list may have
 *   another length. The tries go on from those before: no two attempts at the same place have the same number.
 * - An instance of a labelled map is named by whoever has the items at hand (`takeUnlabelled`), before it is stored.
 */

import { type Scope, unexpandedIndex } from "../graph/scope.ts";
import { judge } from "../graph/trigger-rules.ts";
import { type Instance, isUnexpanded, newInstance } from "../run/instance.ts";
import type { InstanceTable, Slot, Spot } from "../run/instance-table.ts";
import type { RunEvent } from "../run/run-event.ts";
import { isFinished, type TaskState } from "../run/states.ts";
import type { Expansion, ExpansionRow, ScopePlace } from "./expansions.ts";
import { MAPPED_OVER_NOTHING } from "./input-reader.ts";

/** What is to be stored about maps, before anything else of the same decision. */
export interface MapChanges {
  readonly opened: readonly ExpansionRow[];
  readonly closed: readonly { readonly mapId: string; readonly parent: number }[];
  /** Rows that are not needed any more. */
  readonly dropped: readonly { readonly taskId: string; readonly mapIndex: number }[];
  /** Of those: instances that took slots when they were last stored. */
  readonly released: readonly Instance[];
  /** What new instances are called. */
  readonly labels: readonly { readonly taskId: string; readonly mapIndex: number; readonly label: string }[];
}

type End = (instance: Instance, state: TaskState, reason: string) => void;

export class Mapping {
  readonly #table: InstanceTable;
  readonly #end: End;
  /** Where the length was asked for: by scope, then by the item of its parent. */
  readonly #asked: readonly Set<number>[];
  readonly #expandable: ScopePlace[] = [];
  /** Not all of their items are made. */
  readonly #growing = new Set<Expansion>();
  /** Of those with a limit: items that are not through. */
  readonly #open = new Map<Expansion, Set<number>>();
  readonly #opened = new Map<Expansion, ExpansionRow>();
  #closed: MapChanges["closed"][number][] = [];
  #dropped: MapChanges["dropped"][number][] = [];
  #released: Instance[] = [];
  #labels: MapChanges["labels"][number][] = [];
  #unlabelled: Instance[] = [];
  /** By scope: the highest try of all that was folded up. Ordinals are used again, also by other lists of the scope. */
  readonly #tries: number[];

  constructor(table: InstanceTable, end: End) {
    this.#table = table;
    this.#end = end;
    this.#asked = table.scopes.map(() => new Set());
    this.#tries = table.scopes.map(() => 0);
  }

  /** Once after loading: everything is to be looked at. */
  start(): void {
    for (const { due, scope } of this.#table.scopes) {
      if (scope.parent === null) due.add(-1);
      else for (const { base, made } of this.#table.expansions.of(scope.parent)) addRange(due, base, made);
      for (const expansion of this.#table.expansions.of(scope)) {
        this.#noteTries(scope, expansion.tries);
        if (expansion.made === expansion.length) continue;
        this.#growing.add(expansion);
        if (scope.limit === null) continue;
        this.#open.set(expansion, new Set(Array.from({ length: expansion.made }, (_, item) => item)));
      }
    }
    for (const { instances, node } of this.#table.slots) {
      for (const instance of node.scope ? instances : []) {
        if (isUnexpanded(instance)) this.#noteTries(node.scope!.chain[instance.level]!, instance.tryNumber);
        else if (instance.committed === null) this.#wantLabel(instance);
      }
    }
  }

  /** Some list is not made to its end. */
  get isGrowing(): boolean {
    return this.#growing.size > 0;
  }

  settle(): void {
    for (const { due, scope } of this.#table.scopes) {
      for (const parent of due) {
        due.delete(parent);
        this.#judge({ scope, parent });
      }
    }
  }

  /** Whether its own rule says something about an unexpanded instance before its map is expanded. */
  isJudged({ level, node }: Instance): boolean {
    return node.scope!.chain[level]!.members.length === 1;
  }

  /** Its rule lets it run, or does not matter: it is up to its map. */
  leaveToMap(instance: Instance): void {
    const { level, node, ordinal } = instance;
    if (this.isJudged(instance)) this.#table.hold(instance, "expanding");
    this.#table.scopes[node.scope!.chain[level]!.index]!.due.add(ordinal);
  }

  /** Maps whose length has to be found out; each waits for an answer. */
  takeExpandable(): ScopePlace[] {
    return this.#expandable.splice(0).filter((place) => this.#asked[place.scope.index]!.has(place.parent));
  }

  /** What was found out about a list. false: nobody had asked. */
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

  /** There is no list, or not one that can be run over. */
  #refuse(place: ScopePlace, reason: string): boolean {
    if (!this.#answer(place)) return false;
    this.#endAll(place, "upstream_failed", reason);
    return true;
  }

  /** Makes up to about `most` instances of expanded maps. Answers how many: 0 if there was none to make, or no room. */
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

  /** What is not made will not be. */
  stopMaking(): void {
    for (const expansion of this.#growing) this.#table.expect(expansion, expansion.made - expansion.length);
    this.#growing.clear();
  }

  /** New instances of labelled maps: each is to be given its `label`, if it has one. */
  takeUnlabelled(): Instance[] {
    if (this.#unlabelled.length === 0) return [];
    return this.#unlabelled.splice(0).filter(({ position }) => position >= 0);
  }

  label({ mapIndex, node }: Instance, label: string): void {
    this.#labels.push({ taskId: node.id, mapIndex, label });
  }

  takeChanges(): MapChanges | null {
    const [closed, dropped] = [this.#closed, this.#dropped];
    if (this.#opened.size + closed.length + dropped.length + this.#labels.length === 0) return null;
    // What was folded up before it was stored leaves no name behind.
    const labels = this.#labels.filter(({ mapIndex, taskId }) => this.#table.get(taskId, mapIndex));
    const changes = { opened: [...this.#opened.values()], closed, dropped, released: this.#released, labels };
    this.#opened.clear();
    this.#closed = [];
    this.#dropped = [];
    this.#released = [];
    this.#labels = [];
    return changes;
  }

  giveBack({ closed, dropped, labels, opened, released }: MapChanges): void {
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
    else if (verdict === "run") this.#ask(place);
    else {
      if (expansion) this.#fold(expansion);
      this.#answer(place);
      if (verdict !== "wait") this.#endAll(place, verdict, `what it is mapped over: ${verdict}`);
    }
  }

  #ask(place: ScopePlace): void {
    const asked = this.#asked[place.scope.index]!;
    if (asked.has(place.parent)) return;
    const waiting = this.#unexpanded(place);
    if (!waiting.some((each) => each.gate === "expanding" || !this.isJudged(each))) return;
    asked.add(place.parent);
    this.#table.counts.held++;
    this.#expandable.push(place);
  }

  /** false: nobody had asked. */
  #answer({ scope, parent }: ScopePlace): boolean {
    const wasAsked = this.#asked[scope.index]!.delete(parent);
    if (wasAsked) this.#table.counts.held--;
    return wasAsked;
  }

  /** What stands for the instances of each of its tasks and has not ended. */
  #unexpanded({ scope, parent }: ScopePlace): Instance[] {
    const spot = { level: scope.depth - 1, ordinal: parent };
    return this.#slots(scope.members).flatMap((slot) => {
      const standIn = this.#table.standIn(slot, spot);
      return standIn?.state === "none" ? [standIn] : [];
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
      // Over edges that leave the scope they have been counted when it was expanded.
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

  /** Also for the maps in it: of their instances only the row that stands for all of them is left. */
  #noteTries({ children, index }: Scope, tries: number): void {
    if (tries <= this.#tries[index]!) return;
    this.#tries[index] = tries;
    for (const child of children) this.#noteTries(child, tries);
  }

  /** How many more of its items may be under way. */
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

  /** A task of it that had been ruled out for all items is wanted after all. */
  #spread({ base, made, length, parent, scope, tries }: Expansion): void {
    for (const instance of this.#unexpanded({ scope, parent })) {
      this.#drop(instance);
      const slot = this.#table.slots[instance.node.index]!;
      this.#bear(slot, { level: scope.depth, first: base, count: made, tries }, {});
      this.#table.expectOf(slot, { scope, parent }, length - made);
    }
  }

  /** As if it had never been expanded, unless some of it has begun or ended. */
  #fold(expansion: Expansion): void {
    const { parent, scope } = expansion;
    const spot = { level: scope.depth - 1, ordinal: parent };
    const slots = this.#slots(scope.members).filter((slot) => !this.#table.hasStandIn(slot, spot));
    const instances: Instance[] = [];
    for (const slot of slots) {
      for (const instance of this.#table.beneath(slot, spot)) {
        if (instance.state !== "none") return;
        instances.push(instance);
      }
    }
    if (instances.length === 0) return;
    for (const instance of instances) {
      this.#drop(instance);
      this.#noteTries(scope, instance.tryNumber);
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

/** Items to be made, beneath so many scopes. */
interface Range {
  readonly level: number;
  readonly first: number;
  readonly count: number;
  readonly tries: number;
}

function addRange(to: Set<number>, first: number, count: number): void {
  for (let index = 0; index < count; index++) to.add(first + index);
}
