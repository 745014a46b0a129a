/** The ends of an attempt, or of the wait that it left behind: the event of the model, and that of the reference. */
import type { RunEvent, Wait } from "../../src/model/index.ts";
import type { DrivenEvent, DrivenTask } from "./driven-event.ts";

const WAIT: Wait = { timeoutAt: null, onTimeout: "fail", keepsSlot: false };

/** Whether the attempt was to stop or to restart: the model then rejects what the attempt reports, and receives this. */
export function interruption(
  { isStopping, state }: DrivenTask,
  what: DrivenEvent["what"],
): "stopped" | "restarted" | null {
  if (isStopping && (what !== "succeed" || state === "restarting")) return "stopped";
  return state === "restarting" ? "restarted" : null;
}

export function endsOf(
  key: { readonly taskId: string; readonly mapIndex: number; readonly attempt: string; readonly at: number },
  isWaiting: boolean,
): readonly (readonly [RunEvent, DrivenEvent])[] {
  const wakeAt = key.at + 5;
  const ends: (readonly [RunEvent, DrivenEvent])[] = [
    [
      { type: "succeeded", ...key, skip: [] },
      { what: "succeed", of: key.taskId },
    ],
    [
      { type: "succeeded", ...key, skip: [] },
      { what: "succeed", of: key.taskId },
    ],
    [
      { type: "failed", ...key, retry: true, retryAt: wakeAt, reason: "boom" },
      { what: "fail", of: key.taskId, retry: true },
    ],
    [
      { type: "failed", ...key, retry: false, retryAt: null, reason: "boom" },
      { what: "fail", of: key.taskId, retry: false },
    ],
    [
      { type: "skipped", ...key, reason: null },
      { what: "skip", of: key.taskId },
    ],
  ];
  if (!isWaiting) {
    ends.push(
      [
        { type: "lost", ...key, reason: "gone", budget: null, retryAt: wakeAt },
        { what: "lose", of: key.taskId, budget: null },
      ],
      [
        { type: "lost", ...key, reason: "gone", budget: 1, retryAt: wakeAt },
        { what: "lose", of: key.taskId, budget: 1 },
      ],
      [
        { type: "deferred", ...key, wait: WAIT },
        { what: "defer", of: key.taskId },
      ],
      [
        { type: "rescheduled", ...key, retryAt: wakeAt },
        { what: "reschedule", of: key.taskId },
      ],
    );
  }
  return ends;
}
