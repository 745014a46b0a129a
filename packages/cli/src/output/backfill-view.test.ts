import { expect, it } from "vitest";
import { rangeText } from "./backfill-view.ts";

it("shows a range of whole days as days of the DAG's time zone", () => {
  const range = { from_date: "2026-10-19T22:00:00Z", to_date: "2026-10-25T22:59:59.999Z" };
  expect(rangeText(range, "Europe/Berlin")).toEqual({ from: "2026-10-20", to: "2026-10-25" });
  expect(rangeText(range, "UTC")).toEqual({ from: "2026-10-19 22:00:00Z", to: "2026-10-25 22:59:59.999Z" });
});
