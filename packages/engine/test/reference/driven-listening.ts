/** Rules as the reference keeps them: they remember all they have heard since they fired, and look at all of it. */
import type { DagManifest, SignalCondition, SignalRule } from "@tradewind/sdk/manifest";

export type Fact = { readonly signal: string } | { readonly task: string };

export interface Listening {
  readonly rule: SignalRule;
  /** null: the run's own. */
  readonly taskId: string | null;
  /** What it has heard since it fired. */
  heard: Fact[];
  isArmed: boolean;
}

/** In the order in which they act. */
export function listeningOf(manifest: DagManifest): Listening[] {
  const listening = (taskId: string | null, rule: SignalRule): Listening => {
    return { rule, taskId, heard: [], isArmed: true };
  };
  return [
    ...manifest.tasks.flatMap(({ rules, taskId }) => (rules ?? []).map((rule) => listening(taskId, rule))),
    ...(manifest.stop ? [listening(null, { action: "stop", when: manifest.stop, once: true })] : []),
  ];
}

export function fires(listening: Listening, fact: Fact): boolean {
  if (!listening.isArmed) return false;
  listening.heard.push(fact);
  if (!holds(listening.rule.when, listening.heard)) return false;
  listening.heard = [];
  listening.isArmed = !listening.rule.once;
  return true;
}

/** Of conditions without values, which have a reference of their own. */
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
