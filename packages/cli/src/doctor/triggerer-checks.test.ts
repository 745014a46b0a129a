import { expect, it } from "vitest";
import { checkTriggers } from "./triggerer-checks.ts";

it("warns about crashes, unclaimed triggers and full triggerers", () => {
  const checks = [
    ...checkTriggers({
      ...{ status: "healthy", triggers: 5, capacity: 5, full_triggerers: 1 },
      unclaimed_triggers: [{ queue: "gpu", triggers: 2 }],
      ...{ process_crashes: 3, suspected_triggers: 12 },
    }),
  ];
  expect(checks.map(({ result, says }) => `${result} ${says}`)).toEqual([
    "warn a trigger process crashed 3 times in the last 10 minutes; 12 triggers run isolated until the cause is found",
    'warn 2 triggers of queue "gpu" wait for a triggerer',
    "warn a triggerer is full: 5 triggers, capacity 5",
  ]);
  expect(checks.every(({ remedy }) => remedy !== undefined)).toBe(true);
});

it("reports nothing if triggers are healthy or the server sends no figures", () => {
  const well = { full_triggerers: 0, unclaimed_triggers: [], process_crashes: 0, suspected_triggers: 0 };
  expect([...checkTriggers({ status: "healthy", ...well })]).toEqual([]);
  expect([...checkTriggers({ status: "healthy" })]).toEqual([]);
});
