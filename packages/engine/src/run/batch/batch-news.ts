/** The wake-ups that follow from a stored batch. */
import type { WakeUps } from "../../job/wake-up.ts";
import type { RunBatch } from "../../store/task/run-batch.ts";

/** Whether waits ended without their event: their triggers and sub-DAG runs may have no waiter left. */
function cutsWaits(batch: Pick<RunBatch, "waitEnds">): boolean {
  return batch.waitEnds.some(({ kind }) => kind === "timeout" || kind === "cancelled");
}

export function sendNews(wakeUps: WakeUps, batch: RunBatch): void {
  if (batch.sends.length > 0) wakeUps.send("signals");
  if (batch.deliveries.length > 0) wakeUps.send("notices");
  if (batch.deferrals.length > 0) wakeUps.send("triggers");
  if (cutsWaits(batch)) {
    wakeUps.send("unwaited");
    wakeUps.send("callbacks");
  }
}
