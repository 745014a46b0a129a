/**
 * The rules of one run: what each signal makes its tasks do. Compiled once per DAG version ({@link RuleSet}), with one
 * {@link RuleBook} per run that knows where each condition stands. A signal costs a look into an index and then only
 * the rules that may hear it.
 *
 * A book is told everything in the order of the log, exactly once: the position up to which it was told, the states
 * that changed and what the firings do belong into one transaction.
 */
import type { DagManifest, Json, SignalCondition, SignalRule } from "@tradewind/sdk/manifest";
import {
  advance,
  type CompiledCondition,
  type ConditionReport,
  type ConditionState,
  compileCondition,
  describeState,
  emptyState,
  type Heard,
  type LeafState,
  loadState,
} from "./signal-condition.ts";
import { hasWildcard, type ListeningRun, namesMatch, type SignalLeaf } from "./signal-condition-match.ts";

/** A rule of a task, or the run's own `stop`. */
export interface CompiledRule {
  /** Rules that hear the same signal act in this order: tasks as in the manifest, each task's as written, the run's last. */
  readonly order: number;
  /** null: the run itself. */
  readonly taskId: string | null;
  readonly ruleIndex: number;
  readonly action: SignalRule["action"];
  readonly once: boolean;
  readonly condition: CompiledCondition;
}

/** The rules of a DAG version. Immutable; shared by all its runs. */
export class RuleSet {
  readonly rules: readonly CompiledRule[];
  readonly #exact = new Map<string, Map<string, CompiledRule[]>>();
  readonly #patterns: { readonly leaf: SignalLeaf; readonly rule: CompiledRule }[] = [];
  readonly #tasks = new Map<string, CompiledRule[]>();
  readonly #byName: ReadonlyMap<string, CompiledRule>;

  constructor(manifest: Pick<DagManifest, "tasks" | "stop">) {
    const rules: CompiledRule[] = [];
    const add = (taskId: string | null, ruleIndex: number, { action, once, when }: SignalRule) => {
      const condition = compileCondition(when);
      rules.push({ order: rules.length, taskId, ruleIndex, action, once, condition });
    };
    for (const { taskId, rules } of manifest.tasks) {
      rules?.forEach((rule, index) => {
        add(taskId, index, rule);
      });
    }
    if (manifest.stop) add(null, 0, { action: "stop", when: manifest.stop, once: true });
    this.rules = rules;
    this.#byName = new Map(rules.map((rule) => [nameOf(rule), rule]));
    for (const rule of rules) for (const leaf of rule.condition.leaves) this.#index(leaf, rule);
  }

  find(name: Pick<CompiledRule, "taskId" | "ruleIndex">): CompiledRule | undefined {
    return this.#byName.get(nameOf(name));
  }

  /** The rules that may hear this, in their order: the others need not be asked. */
  candidates(heard: Heard): readonly CompiledRule[] {
    const sure =
      heard.kind === "task"
        ? this.#tasks.get(heard.taskId)
        : this.#exact.get(heard.namespace)?.get(heard.key);
    if (heard.kind === "task" || this.#patterns.length === 0) return sure ?? [];
    const found = new Set(sure);
    for (const { leaf, rule } of this.#patterns) if (namesMatch(leaf, heard)) found.add(rule);
    return [...found].sort((a, b) => a.order - b.order);
  }

  /** Each list is in order and without duplicates: rules are added in their order. */
  #index(leaf: Extract<SignalCondition, { kind: "signal" | "task" }>, rule: CompiledRule): void {
    if (leaf.kind === "task") {
      addTo(this.#tasks, leaf.taskId, rule);
    } else if (hasWildcard(leaf)) {
      this.#patterns.push({ leaf, rule });
    } else {
      const keys = this.#exact.get(leaf.namespace) ?? new Map<string, CompiledRule[]>();
      this.#exact.set(leaf.namespace, keys);
      addTo(keys, leaf.key, rule);
    }
  }
}

/** What a rule does, because of what was heard. */
export interface Firing {
  /** null: the run itself stops. */
  readonly taskId: string | null;
  readonly ruleIndex: number;
  readonly action: SignalRule["action"];
  /** What made it fire: what each true leaf of its condition had heard. */
  readonly by: readonly LeafState[];
}

/** One rule of one run, as it is stored: no more than a line of JSON. */
export interface StoredRule {
  readonly taskId: string | null;
  readonly ruleIndex: number;
  readonly state: Json;
}

/** A rule and where it stands, for people. */
export interface RuleReport extends ConditionReport {
  readonly taskId: string | null;
  readonly ruleIndex: number;
  readonly action: SignalRule["action"];
  readonly once: boolean;
  /** false: it has fired once and is done, or its run is closed. */
  readonly isArmed: boolean;
  readonly fired: number;
}

interface RuleState {
  readonly condition: ConditionState;
  readonly fired: number;
  readonly isArmed: boolean;
}

export class RuleBook {
  readonly #set: RuleSet;
  readonly #run: ListeningRun;
  /** Of rules that have heard something; the others stand as at the beginning. */
  readonly #states = new Map<CompiledRule, RuleState>();
  readonly #changed = new Set<CompiledRule>();
  /** How many armed rules could still start something. */
  #starters = 0;

  constructor(set: RuleSet, run: ListeningRun, stored: Iterable<StoredRule> = []) {
    this.#set = set;
    this.#run = run;
    for (const each of stored) {
      const rule = set.find(each);
      if (rule !== undefined) this.#states.set(rule, stateFrom(rule, each.state));
    }
    for (const rule of set.rules) if (canStart(rule) && this.#isArmed(rule)) this.#starters++;
  }

  /** Some rule may still start or restart a task: the run is not over, whatever has finished. */
  get mayStart(): boolean {
    return this.#starters > 0;
  }

  /** To be called for everything that is heard, in order. What fires acts in the order of the answer. */
  hear(heard: Heard): Firing[] {
    const firings: Firing[] = [];
    for (const rule of this.#set.candidates(heard)) {
      const before = this.#stateOf(rule);
      if (!before.isArmed) continue;
      const { state, fired, by } = advance(rule.condition, before.condition, heard, this.#run);
      if (state === before.condition) continue;
      const { taskId, ruleIndex, action, once } = rule;
      const isArmed = !(fired && once);
      this.#put(rule, { condition: state, fired: before.fired + (fired ? 1 : 0), isArmed });
      if (fired) firings.push({ taskId, ruleIndex, action, by });
    }
    return firings;
  }

  /** Nothing that is heard from now on counts, for the rules of one task or for all; what was heard is forgotten. */
  disarm(taskId?: string): void {
    for (const rule of this.#set.rules) {
      if (taskId !== undefined && rule.taskId !== taskId) continue;
      const { fired, isArmed } = this.#stateOf(rule);
      if (isArmed) this.#put(rule, { condition: emptyState(rule.condition), fired, isArmed: false });
    }
  }

  /** The other way round, e.g. when a closed run is cleared: they begin again. */
  arm(taskId?: string): void {
    for (const rule of this.#set.rules) {
      if (taskId !== undefined && rule.taskId !== taskId) continue;
      const { fired, isArmed } = this.#stateOf(rule);
      if (!isArmed) this.#put(rule, { condition: emptyState(rule.condition), fired, isArmed: true });
    }
  }

  /** The states that have changed since this was asked last, to be stored. */
  takeChanges(): StoredRule[] {
    const changed = [...this.#changed].map((rule) => {
      const { condition, fired, isArmed } = this.#stateOf(rule);
      const state = { leaves: condition.leaves, fired, armed: isArmed } as unknown as Json;
      return { taskId: rule.taskId, ruleIndex: rule.ruleIndex, state };
    });
    this.#changed.clear();
    return changed;
  }

  /** All rules and where they stand, in order. */
  report(): RuleReport[] {
    return this.#set.rules.map((rule) => {
      const { taskId, ruleIndex, action, once } = rule;
      const { condition, fired, isArmed } = this.#stateOf(rule);
      return {
        taskId,
        ruleIndex,
        action,
        once,
        isArmed,
        fired,
        ...describeState(rule.condition, condition),
      };
    });
  }

  #stateOf(rule: CompiledRule): RuleState {
    return this.#states.get(rule) ?? { condition: emptyState(rule.condition), fired: 0, isArmed: true };
  }

  #isArmed(rule: CompiledRule): boolean {
    return this.#states.get(rule)?.isArmed ?? true;
  }

  #put(rule: CompiledRule, state: RuleState): void {
    const was = this.#isArmed(rule);
    this.#states.set(rule, state);
    this.#changed.add(rule);
    if (canStart(rule) && was !== state.isArmed) this.#starters += state.isArmed ? 1 : -1;
  }
}

function stateFrom(rule: CompiledRule, stored: Json): RuleState {
  const { fired, armed } = (stored ?? {}) as { readonly fired?: Json; readonly armed?: Json };
  return {
    condition: loadState(rule.condition, stored),
    fired: typeof fired === "number" ? fired : 0,
    isArmed: armed !== false,
  };
}

function canStart({ action }: CompiledRule): boolean {
  return action !== "stop";
}

function nameOf({ taskId, ruleIndex }: Pick<CompiledRule, "taskId" | "ruleIndex">): string {
  return JSON.stringify([taskId, ruleIndex]);
}

function addTo(index: Map<string, CompiledRule[]>, key: string, rule: CompiledRule): void {
  const rules = index.get(key);
  if (rules === undefined) index.set(key, [rule]);
  else if (rules.at(-1) !== rule) rules.push(rule);
}
