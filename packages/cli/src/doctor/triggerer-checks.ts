import type { Health } from "../client/resources.ts";
import type { Check } from "./checks.ts";

/** What goes wrong with triggers while the triggerers themselves are alive. */
export function* checkTriggers(triggerer: NonNullable<Health["triggerer"]>): Generator<Check> {
  const { full_triggerers, process_crashes, suspected_triggers, unclaimed_triggers } = triggerer;
  const name = "triggers";
  if (process_crashes) {
    const times = process_crashes === 1 ? "once" : `${process_crashes} times`;
    const isolated = suspected_triggers
      ? `; ${suspected_triggers} are isolated until the guilty one is found`
      : "";
    yield {
      name,
      result: "warn",
      says: `a process of triggers crashed ${times} in the last 10 minutes${isolated}`,
      remedy: "the triggerer's log has the reason; a trigger that is found guilty fails with TRIGGER_CRASHED",
    };
  }
  for (const { queue, triggers } of unclaimed_triggers ?? []) {
    yield {
      name,
      result: "warn",
      says: `${triggers} of queue "${queue}" wait for a triggerer that runs them`,
      remedy: full_triggerers
        ? `start another: tradewind triggerer --queues ${queue}; or raise TRADEWIND_TRIGGERER_CAPACITY`
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
