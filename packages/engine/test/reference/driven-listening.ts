/** Signal rules of the reference: each keeps all facts since it last fired, and evaluates all of them again. */
import type { DagManifest, SignalCondition, SignalRule } from "@tradewind/sdk/manifest";

export type Fact = { readonly signal: string; readonly version: number } | { readonly task: string };

export interface Listening {
  readonly rule: SignalRule;
  /** null: the rule that stops the run. */
  readonly taskId: string | null;
  /** The facts received since it last fired. */
  received: Fact[];
  isArmed: boolean;
}

/** The rules of a DAG, in the order in which they act. */
export function listeningOf(manifest: DagManifest): Listening[] {
  const listening = (taskId: string | null, rule: SignalRule): Listening => {
    return { rule, taskId, received: [], isArmed: true };
  };
  return [
    ...manifest.tasks.flatMap(({ rules, taskId }) => (rules ?? []).map((rule) => listening(taskId, rule))),
    ...(manifest.stop ? [listening(null, { action: "stop", when: manifest.stop, once: true })] : []),
  ];
}

/** The versions of the signals that made the rule fire; null: it does not fire. */
export function fires(listening: Listening, fact: Fact): number[] | null {
  if (!listening.isArmed) return null;
  listening.received.push(fact);
  if (!holds(listening.rule.when, listening.received)) return null;
  const versions = leavesOf(listening.rule.when).map((leaf) => latest(leaf, listening.received));
  listening.received = [];
  listening.isArmed = !listening.rule.once;
  return [...new Set(versions.filter((version) => version !== undefined))];
}

function leavesOf(condition: SignalCondition): SignalCondition[] {
  return "of" in condition ? condition.of.flatMap(leavesOf) : [condition];
}

function latest(leaf: SignalCondition, heard: readonly Fact[]): number | undefined {
  const isIt = (fact: Fact) => "signal" in fact && leaf.kind === "signal" && fact.signal === leaf.key;
  const found = heard.findLast(isIt);
  return found && "version" in found ? found.version : undefined;
}

/** Ignores value conditions, which have their own reference. */
function holds(condition: SignalCondition, heard: readonly Fact[]): boolean {
  switch (condition.kind) {
    case "all":
      return condition.of.every((part) => holds(part, heard));
    case "any":
      return condition.of.some((part) => holds(part, heard));
    case "signal":
      return heard.some((fact) => "signal" in fact && fact.signal === condition.key);
    case "task":
      return heard.some((fact) => "task" in fact && fact.task === condition.taskId);
  }
}
