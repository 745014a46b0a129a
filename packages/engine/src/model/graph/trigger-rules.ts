/**
 * The trigger rules: whether a task may start, given the states of its direct upstream instances.
 *
 * A rule decides as soon as it can ("short circuit"): with the default rule, a task is `upstream_failed` as soon as one
 * upstream failed, in any state of the others. So a verdict may depend on the order in which upstreams end, but "run" never
 * changes when more of them end: a task that may run stays allowed to run.
 */
import type { TriggerRule } from "@tradewind/sdk/manifest";

/** Direct upstream instances by final state; a mapped upstream counts once per instance. */
export interface Counters {
  total: number;
  success: number;
  skipped: number;
  failed: number;
  upstreamFailed: number;
  removed: number;
  /** The same for upstreams that are setups. They are included in the numbers above, too. */
  setupTotal: number;
  setupSuccess: number;
  setupSkipped: number;
  setupFailed: number;
}

export type Verdict = "run" | "wait" | "skipped" | "upstream_failed";

export function emptyCounters(): Counters {
  return {
    total: 0,
    success: 0,
    skipped: 0,
    failed: 0,
    upstreamFailed: 0,
    removed: 0,
    setupTotal: 0,
    setupSuccess: 0,
    setupSkipped: 0,
    setupFailed: 0,
  };
}

export function judge(rule: TriggerRule, c: Counters): Verdict {
  if (c.total === 0) return "run";
  return RULES[rule](c);
}

type Rule = (c: Counters) => Verdict;

const bad = (c: Counters) => c.failed + c.upstreamFailed;
const isDone = (c: Counters) => c.success + c.skipped + bad(c) + c.removed >= c.total;

const RULES: Readonly<Record<TriggerRule, Rule>> = {
  allSuccess(c) {
    if (bad(c) > 0) return "upstream_failed";
    if (c.skipped > 0) return "skipped";
    return c.success + c.removed >= c.total ? "run" : "wait";
  },
  allFailed(c) {
    if (c.success + c.skipped > 0) return "skipped";
    return bad(c) + c.removed >= c.total ? "run" : "wait";
  },
  allDone(c) {
    return isDone(c) ? "run" : "wait";
  },
  allDoneMinOneSuccess(c) {
    if (c.skipped > 0) return "skipped";
    if (!isDone(c)) return "wait";
    return c.success > 0 ? "run" : "upstream_failed";
  },
  allDoneSetupSuccess(c) {
    if (!isDone(c)) return "wait";
    if (c.setupTotal === 0 || c.setupSuccess > 0) return "run";
    return c.setupSkipped >= c.setupTotal ? "skipped" : "upstream_failed";
  },
  oneSuccess(c) {
    if (c.success > 0) return "run";
    if (!isDone(c)) return "wait";
    return c.skipped >= c.total ? "skipped" : "upstream_failed";
  },
  oneFailed(c) {
    if (bad(c) > 0) return "run";
    return isDone(c) ? "skipped" : "wait";
  },
  oneDone(c) {
    if (c.success + c.failed > 0) return "run";
    return isDone(c) ? "skipped" : "wait";
  },
  noneFailed(c) {
    if (bad(c) > 0) return "upstream_failed";
    return isDone(c) ? "run" : "wait";
  },
  noneFailedMinOneSuccess(c) {
    if (bad(c) > 0) return "upstream_failed";
    if (!isDone(c)) return "wait";
    if (c.success > 0) return "run";
    return c.skipped >= c.total ? "skipped" : "upstream_failed";
  },
  noneSkipped(c) {
    if (c.skipped > 0) return "skipped";
    return isDone(c) ? "run" : "wait";
  },
  allSkipped(c) {
    if (c.success + bad(c) > 0) return "skipped";
    return c.skipped >= c.total ? "run" : "wait";
  },
  always() {
    return "run";
  },
};
