/** What a task does on signals: rules, in the order in which they act. */

import { DagDefinitionError, show } from "../check/errors.ts";
import { flag, knownOptions } from "../check/option-check.ts";
import type { SignalRule } from "../manifest.ts";
import {
  type ConditionNode,
  type ConditionPart,
  conditionManifest,
  leavesOf,
} from "../schedule/condition.ts";
import type { AnyOutput } from "./handle.ts";

/** Where a rule keeps what it is made of; registered, so that two copies of the SDK agree on it. */
const RULE: unique symbol = Symbol.for("tradewind.signalRule") as never;

type SignalNode = Extract<ConditionNode, { kind: "signal" }>;

/** What a manifest cannot say: the schemas of the signals in a task's rules. */
const SIGNALS = new WeakMap<readonly SignalRule[], readonly SignalNode[]>();

/** What {@link start}, {@link restart} and {@link stop} make. */
export interface Rule {
  readonly [RULE]: {
    readonly action: SignalRule["action"];
    readonly when: ConditionPart;
    readonly once: boolean;
  };
}

export interface RuleOptions {
  /** Acts the first time only (false: every time the condition comes true). */
  readonly once?: boolean;
}

/**
 * Starts the task when the condition comes true; while it is under way, once more after it. A task with such a rule
 * does not start by its upstream tasks alone.
 *
 * @example
 * ```ts
 * const watermark = signal("clicks.watermark", z.object({ hour: z.string() }));
 * d.task("train", { on: [start(watermark)] }, () => publish());
 * ```
 */
export function start(when: ConditionPart, options?: RuleOptions): Rule {
  return rule("start", when, options);
}

/**
 * Starts the task again when the condition comes true: what is under way is stopped first.
 *
 * @example
 * ```ts
 * const validated = signal("model.validated");
 * d.task("serve", { lifetime: "streaming", on: [restart(validated)] }, () => publish());
 * ```
 */
export function restart(when: ConditionPart, options?: RuleOptions): Rule {
  return rule("restart", when, options);
}

/**
 * Stops the task when the condition comes true; starts that have not happened yet are forgotten.
 *
 * @example
 * ```ts
 * const closed = signal("market.closed");
 * d.task("quotes", { lifetime: "streaming", on: [stop(closed, { once: true })] }, () => publish());
 * ```
 */
export function stop(when: ConditionPart, options?: RuleOptions): Rule {
  return rule("stop", when, options);
}

/** The manifest's form of a task's `on`; undefined when there is none. */
export function ruleManifests(
  given: unknown,
  where: string,
  taskOf: (handle: AnyOutput) => string,
): readonly SignalRule[] | undefined {
  if (given === undefined) return undefined;
  const rules = Array.isArray(given) ? given : [given];
  const manifests = rules.map((each): SignalRule => {
    if (typeof each !== "object" || each === null || !(RULE in each)) {
      throw new DagDefinitionError(
        "TW_BAD_OPTION",
        `${where}: on takes start(), restart() and stop(), got ${show(each)}`,
      );
    }
    const { action, when, once } = (each as Rule)[RULE];
    return { action, when: conditionManifest(when, `${where}: ${action}()`, taskOf), once };
  });
  if (manifests.length === 0) return undefined;
  SIGNALS.set(
    manifests,
    rules.flatMap((each) => leavesOf((each as Rule)[RULE].when)),
  );
  return manifests;
}

/** The signals of what {@link ruleManifests} has made. */
export function signalsOf(rules: readonly SignalRule[] | undefined): readonly SignalNode[] {
  return (rules && SIGNALS.get(rules)) ?? [];
}

function rule(action: SignalRule["action"], when: ConditionPart, options?: RuleOptions): Rule {
  const where = `${action}()`;
  // Checked here too: a mistake is reported where it was made.
  conditionManifest(when, where, ({ taskId }) => taskId);
  const once = flag(knownOptions(options, ["once"], where), "once", where);
  return Object.freeze({ [RULE]: Object.freeze({ action, when, once }) });
}
