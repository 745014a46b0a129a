import { expect, it } from "vitest";
import { newEntry, TriggerRoster } from "../triggerer/trigger-roster.ts";
import { StallJudge } from "./stall-judge.ts";

it("names a trigger that has ended before its stall is reported, and no trigger that was never there", () => {
  const roster = new TriggerRoster(() => 1);
  const told: object[] = [];
  const judge = new StallJudge(roster, 60_000, {
    reported: (stall) => told.push(stall),
    condemned: () => {},
  });
  const entry = newEntry({ id: 7, kind: "acme.busy", args: {}, bundlePath: null });
  roster.add(entry);
  const { serial } = roster.assign(entry);
  const stalled = (who: number) => {
    for (const ms of [200, 250]) judge.record({ k: "seen", who, ms, stack: "    at spin (dags:/a.ts:3:5)" });
    judge.record({ k: "over", ms: 700 });
  };
  roster.forget(entry);
  stalled(serial);
  stalled(serial + 1);
  const stall = { ms: 700, stack: "    at spin (dags:/a.ts:3:5)", isFailed: false };
  expect(told).toEqual([
    { id: 7, kind: "acme.busy", ...stall },
    { id: null, kind: null, ...stall },
  ]);
});
