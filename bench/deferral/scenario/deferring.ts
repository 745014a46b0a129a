/** From nothing to 1,000 waiting tasks: by workers that defer, and started at their triggers without one. */
import type { Figure } from "../../result.ts";
import { digits, median } from "../../statistics.ts";
import { allDeferred, type WaitingRig } from "../waiting-rig.ts";

const ROUNDS = 3;

export async function deferring(rig: WaitingRig): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const form of ["worked", "begun"] as const) {
    const dagId = `${form}_1000`;
    const seconds: number[] = [];
    for (let round = 0; round <= ROUNDS; round++) {
      const started = performance.now();
      const ids = await rig.create([dagId]);
      await allDeferred(rig, ids, 1_000);
      // The first round loads the code.
      if (round > 0) seconds.push((performance.now() - started) / 1_000);
    }
    figures.push({
      scenario: "b",
      what: `1,000 tasks of a run deferred, ${form === "begun" ? "begun at their triggers" : "each by a worker"}`,
      value: median(seconds),
      unit: "s",
      bar: { atMost: 3 },
      note: `from the run's creation; all of ${seconds.map(digits).join(", ")}`,
    });
  }
  return figures;
}
