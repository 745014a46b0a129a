import { expect, it } from "vitest";
import type { RunActor } from "../loaded/run-actor.ts";
import { Timers, type TimersOptions } from "./timers.ts";

const DAY_MS = 86_400_000;

/** The parts of a run that timers use. */
function run(id: number, endsAt: number): RunActor {
  const known = { id, timerAt: Number.POSITIVE_INFINITY, nextMoment: () => endsAt };
  return known as unknown as RunActor;
}

it("keeps no timers of runs that have ended", () => {
  const actors = new Map<number, RunActor>();
  const timers = new Timers({ actors } as unknown as TimersOptions);
  const live = run(0, DAY_MS);
  actors.set(0, live);
  timers.schedule(live);
  for (let id = 1; id <= 20_000; id++) {
    const actor = run(id, 2 * DAY_MS);
    actors.set(id, actor);
    timers.schedule(actor);
    actors.delete(id);
  }
  expect(timers.size).toBeLessThan(2_000);
  expect(live.timerAt).toBe(DAY_MS);
});
