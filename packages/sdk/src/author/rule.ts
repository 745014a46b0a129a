/** Signal rules of a task, in the order in which they apply. */

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

/** The key of a rule's content; a registered symbol, shared by all copies of the SDK. */
const RULE: unique symbol = Symbol.for("tradewind.signalRule") as never;

type SignalNode = Extract<ConditionNode, { kind: "signal" }>;

/** The schemas of the signals in a task's rules, which a manifest cannot contain. */
const SIGNALS = new WeakMap<readonly SignalRule[], readonly SignalNode[]>();

/**
 * The type of {@link start}, {@link restart} and {@link stop}.
 * @example const rules: Rule[] = [start(signal("go")), stop(signal("halt"))];
 */
export interface Rule {
  readonly [RULE]: {
    readonly action: SignalRule["action"];
    readonly when: ConditionPart;
    readonly once: boolean;
  };
}

/**
 * Options of a rule.
 * @example const options: RuleOptions = { once: true };
 */
export interface RuleOptions {
  /** Apply the rule only the first time that the condition becomes true (default false). */
  readonly once?: boolean;
}

/**
 * Starts the task each time the condition becomes true; a running task is started once more after it has ended.
 * @see docs/guides/signals.md
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
 * Restarts the task when the condition becomes true: a running attempt is stopped first.
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
 * Stops the task when the condition becomes true, and drops its pending starts.
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

/** The manifest form of a task's `on`; undefined if there is none. */
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

/** The signals of rules that {@link ruleManifests} created. */
export function signalsOf(rules: readonly SignalRule[] | undefined): readonly SignalNode[] {
  return (rules && SIGNALS.get(rules)) ?? [];
}

function rule(action: SignalRule["action"], when: ConditionPart, options?: RuleOptions): Rule {
  const where = `${action}()`;
  // Checked here as well, so that an error is reported where it was made.
  conditionManifest(when, where, ({ taskId }) => taskId);
  const once = flag(knownOptions(options, ["once"], where), "once", where);
  return Object.freeze({ [RULE]: Object.freeze({ action, when, once }) });
}
