/**
 * The rules of one run: the effects of signals on its tasks. Compiled once per DAG version ({@link RuleSet}), with one
 * {@link RuleBook} per run that holds the state of each condition. A signal costs an index lookup plus the evaluation of the
 * rules that may match.
 *
 * A book receives every input in the order of the log, exactly once: the position in the log, the changed states and the
 * effects of the firings belong in one transaction.
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
  type Fact,
  type LeafState,
  loadState,
} from "./signal-condition.ts";
import { hasWildcard, type ListeningRun, namesMatch, type SignalLeaf } from "./signal-condition-match.ts";

/** A rule of a task, or the run's own `stop`. */
export interface CompiledRule {
  /** The order of rules for the same signal: tasks as in the manifest, a task's rules as written, the run's last. */
  readonly order: number;
  /** null: the rule of the run. */
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

  /** The rules that may match, in their order. The others need no evaluation. */
  candidates(heard: Fact): readonly CompiledRule[] {
    const sure =
      heard.kind === "task"
        ? this.#tasks.get(heard.taskId)
        : this.#exact.get(heard.namespace)?.get(heard.key);
    if (heard.kind === "task" || this.#patterns.length === 0) return sure ?? [];
    const found = new Set(sure);
    for (const { leaf, rule } of this.#patterns) if (namesMatch(leaf, heard)) found.add(rule);
    return [...found].sort((a, b) => a.order - b.order);
  }

  /** Each list is sorted and without duplicates, because rules are added in their order. */
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

/** The action of a rule that fired. */
export interface Firing {
  /** null: the run stops. */
  readonly taskId: string | null;
  readonly ruleIndex: number;
  readonly action: SignalRule["action"];
  /** The cause: the matches of the true leaves of its condition. */
  readonly by: readonly LeafState[];
}

/** The stored state of one rule of a run: one line of JSON. */
export interface StoredRule {
  readonly taskId: string | null;
  readonly ruleIndex: number;
  readonly state: Json;
}

/** A rule and its progress, for display. */
export interface RuleReport extends ConditionReport {
  readonly taskId: string | null;
  readonly ruleIndex: number;
  readonly action: SignalRule["action"];
  readonly once: boolean;
  /** false: a rule with `once` has fired, or its run is closed. */
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
  /** The states of rules with matches; the others are in their initial state. */
  readonly #states = new Map<CompiledRule, RuleState>();
  readonly #changed = new Set<CompiledRule>();
  /** The number of armed rules that could still start a task. */
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

  /** Whether a rule can still start or restart a task: then the run has not ended, in any state of its tasks. */
  get mayStart(): boolean {
    return this.#starters > 0;
  }

  /** Call for every input, in order. The firings act in the returned order. */
  receive(heard: Fact): Firing[] {
    const firings: Firing[] = [];
    for (const rule of this.#set.candidates(heard)) {
      const before = this.#stateOf(rule);
      if (!before.isArmed) continue;
      const { state, fired, by } = advance(rule.condition, before.condition, heard, this.#run);
      if (state === before.condition) continue;
      const { taskId, ruleIndex, action, once } = rule;
      const isArmed = !(fired && once);
      this.#setState(rule, { condition: state, fired: before.fired + (fired ? 1 : 0), isArmed });
      if (fired) firings.push({ taskId, ruleIndex, action, by });
    }
    return firings;
  }

  /** From now on inputs do not count, for the rules of one task or all; earlier matches are dropped. */
  disarm(taskId?: string): void {
    for (const rule of this.#set.rules) {
      if (taskId !== undefined && rule.taskId !== taskId) continue;
      const { fired, isArmed } = this.#stateOf(rule);
      if (isArmed) this.#setState(rule, { condition: emptyState(rule.condition), fired, isArmed: false });
    }
  }

  /** The inverse, e.g. when a closed run is cleared: the rules start from their initial state. */
  arm(taskId?: string): void {
    for (const rule of this.#set.rules) {
      if (taskId !== undefined && rule.taskId !== taskId) continue;
      const { fired, isArmed } = this.#stateOf(rule);
      if (!isArmed) this.#setState(rule, { condition: emptyState(rule.condition), fired, isArmed: true });
    }
  }

  /** The changed states since the last call, to be stored. */
  drainChanges(): StoredRule[] {
    const changed = [...this.#changed].map((rule) => {
      const { condition, fired, isArmed } = this.#stateOf(rule);
      const state = { leaves: condition.leaves, fired, armed: isArmed } as unknown as Json;
      return { taskId: rule.taskId, ruleIndex: rule.ruleIndex, state };
    });
    this.#changed.clear();
    return changed;
  }

  /** All rules with their progress, in order. */
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

  #setState(rule: CompiledRule, state: RuleState): void {
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
