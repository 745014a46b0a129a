import type { Health } from "../client/resources.ts";
import type { Check } from "./checks.ts";

/** Problems with triggers while their triggerers are alive. */
export function* checkTriggers(triggerer: NonNullable<Health["triggerer"]>): Generator<Check> {
  const { full_triggerers, process_crashes, suspected_triggers, unclaimed_triggers } = triggerer;
  const name = "triggers";
  if (process_crashes) {
    const times = process_crashes === 1 ? "once" : `${process_crashes} times`;
    const isolated = suspected_triggers
      ? `; ${suspected_triggers} triggers run isolated until the cause is found`
      : "";
    yield {
      name,
      result: "warn",
      says: `a trigger process crashed ${times} in the last 10 minutes${isolated}`,
      remedy: "see the triggerer's log; the trigger that caused it fails with TRIGGER_CRASHED",
    };
  }
  for (const { queue, triggers } of unclaimed_triggers ?? []) {
    yield {
      name,
      result: "warn",
      says: `${triggers} triggers of queue "${queue}" wait for a triggerer`,
      remedy: full_triggerers
        ? `start another one: tradewind triggerer --queues ${queue}; or raise TRADEWIND_TRIGGERER_CAPACITY`
        : `start one: tradewind triggerer --queues ${queue}`,
    };
  }
  if (full_triggerers) {
    yield {
      name,
      result: "warn",
      says: `${full_triggerers === 1 ? "a triggerer is" : `${full_triggerers} triggerers are`} full: ${triggerer.triggers} triggers, capacity ${triggerer.capacity}`,
      remedy: "start another triggerer, or raise TRADEWIND_TRIGGERER_CAPACITY",
    };
  }
}
