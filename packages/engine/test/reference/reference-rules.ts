/** The trigger rules of the reference interpreter, written from their documentation; shares no code with the engine. */
import type { TriggerRule } from "@tradewind/sdk/manifest";

/** Rules that may decide before all upstream tasks have ended. */
export const EARLY: readonly TriggerRule[] = ["always", "oneSuccess", "oneFailed", "oneDone"];

export type EndState = "success" | "failed" | "skipped" | "upstream_failed" | "removed";
export type ReferenceState =
  | EndState
  | "pending"
  | "scheduled"
  | "queued"
  | "running"
  | "restarting"
  | "up_for_retry"
  | "up_for_reschedule"
  | "deferred";

export type Verdict = "run" | "wait" | "skipped" | "upstream_failed";

export function judgeByRule(
  rule: TriggerRule,
  upstream: { readonly states: readonly ReferenceState[]; readonly setups: readonly ReferenceState[] },
): Verdict {
  const { states, setups } = upstream;
  if (states.length === 0 || rule === "always") return "run";
  const isBad = (state: ReferenceState) => state === "failed" || state === "upstream_failed";
  const some = (...wanted: ReferenceState[]) => states.some((state) => wanted.includes(state));
  const every = (...wanted: ReferenceState[]) => states.every((state) => wanted.includes(state));
  const allEnded = states.every(isEnd);
  switch (rule) {
    case "allSuccess":
      if (states.some(isBad)) return "upstream_failed";
      if (some("skipped")) return "skipped";
      return every("success", "removed") ? "run" : "wait";
    case "allFailed":
      if (some("success", "skipped")) return "skipped";
      return allEnded ? "run" : "wait";
    case "allDone":
      return allEnded ? "run" : "wait";
    case "allDoneMinOneSuccess":
      if (some("skipped")) return "skipped";
      if (!allEnded) return "wait";
      return some("success") ? "run" : "upstream_failed";
    case "allDoneSetupSuccess":
      if (!allEnded) return "wait";
      if (setups.length === 0 || setups.includes("success")) return "run";
      return setups.every((state) => state === "skipped") ? "skipped" : "upstream_failed";
    case "oneSuccess":
      if (some("success")) return "run";
      if (!allEnded) return "wait";
      return every("skipped") ? "skipped" : "upstream_failed";
    case "oneFailed":
      if (states.some(isBad)) return "run";
      return allEnded ? "skipped" : "wait";
    case "oneDone":
      if (some("success", "failed")) return "run";
      return allEnded ? "skipped" : "wait";
    case "noneFailed":
      if (states.some(isBad)) return "upstream_failed";
      return allEnded ? "run" : "wait";
    case "noneFailedMinOneSuccess":
      if (states.some(isBad)) return "upstream_failed";
      if (!allEnded) return "wait";
      if (some("success")) return "run";
      return every("skipped") ? "skipped" : "upstream_failed";
    case "noneSkipped":
      if (some("skipped")) return "skipped";
      return allEnded ? "run" : "wait";
    case "allSkipped":
      if (some("success", "failed", "upstream_failed")) return "skipped";
      return every("skipped") ? "run" : "wait";
  }
}

export function isEnd(state: ReferenceState): state is EndState {
  return ["success", "failed", "skipped", "upstream_failed", "removed"].includes(state);
}
