import type { ScheduleManifest } from "@tradewind/sdk/manifest";
import { describe, expect, it } from "vitest";
import { type RangeEnd, rangeInstants } from "./day-range.ts";

const cron = (timezone: string) => ({ kind: "cron", expression: "0 2 * * *", timezone }) as ScheduleManifest;
const every = { kind: "interval" } as ScheduleManifest;

function shown(schedule: ScheduleManifest, from: RangeEnd, to: RangeEnd): string[] {
  const range = rangeInstants(schedule, { from, to });
  return [range.from, range.to].map((instant) => new Date(instant).toISOString());
}

describe("rangeInstants", () => {
  it("includes whole days, in the zone of the schedule", () => {
    const days = [{ day: "2026-01-01" }, { day: "2026-01-31" }] as const;
    expect(shown(cron("UTC"), ...days)).toEqual(["2026-01-01T00:00:00.000Z", "2026-01-31T23:59:59.999Z"]);
    expect(shown(cron("Europe/Berlin"), ...days)).toEqual([
      "2025-12-31T23:00:00.000Z",
      "2026-01-31T22:59:59.999Z",
    ]);
    expect(shown(cron("America/New_York"), ...days)).toEqual([
      "2026-01-01T05:00:00.000Z",
      "2026-02-01T04:59:59.999Z",
    ]);
  });

  it("handles days of 23 and 25 hours, and days without a midnight", () => {
    const day = (name: string) => [{ day: name }, { day: name }] as const;
    expect(shown(cron("Europe/Berlin"), ...day("2026-03-29"))).toEqual([
      "2026-03-28T23:00:00.000Z",
      "2026-03-29T21:59:59.999Z",
    ]);
    expect(shown(cron("Europe/Berlin"), ...day("2026-10-25"))).toEqual([
      "2026-10-24T22:00:00.000Z",
      "2026-10-25T22:59:59.999Z",
    ]);
    expect(shown(cron("Africa/Cairo"), ...day("2026-04-24"))).toEqual([
      "2026-04-23T22:00:00.000Z",
      "2026-04-24T20:59:59.999Z",
    ]);
  });

  it("keeps instants unchanged", () => {
    const from = Date.parse("2026-01-01T08:00:00Z");
    expect(shown(cron("Europe/Berlin"), from, from)).toEqual(Array(2).fill("2026-01-01T08:00:00.000Z"));
  });

  it("uses UTC days for a schedule without a zone or with several", () => {
    const several = { kind: "several", of: [cron("Asia/Tokyo"), cron("UTC")] } as ScheduleManifest;
    for (const schedule of [every, several])
      expect(shown(schedule, { day: "2026-01-01" }, { day: "2026-01-01" })).toEqual([
        "2026-01-01T00:00:00.000Z",
        "2026-01-01T23:59:59.999Z",
      ]);
  });
});
