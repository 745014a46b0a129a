/** The name of a job in messages, and the lines with which its log begins and ends. */
import type { Deferral } from "@tradewind/sdk/program";
import { durationText } from "@tradewind/sdk/wording";
import type { OutputReference } from "../../model/index.ts";
import type { AttemptAssignment, CallbackAssignment } from "../contract.ts";

export const CLOSING = {
  success: "Succeeded.",
  cancelled: "Cancelled.",
  lost: "Lost; it does not count as a try.",
};

export function waitingText({ trigger, timeoutMs }: Deferral): string {
  const limit = timeoutMs === null ? "" : `, for ${durationText(timeoutMs)} at most`;
  return `Waits for the trigger ${trigger.kind}${limit}.`;
}

export function storedText({ bytes, key, store }: OutputReference): string {
  return `Its output has ${bytes} bytes and is stored as ${key} in ${store}.`;
}

export function sequence({ resumePoint, elapsedMs }: AttemptAssignment): string {
  if (resumePoint !== null) return ` resumes at ${resumePoint.method}()`;
  return elapsedMs > 0 ? " resumes" : "";
}

export function subjectOf(assignment: AttemptAssignment): string {
  const index = assignment.mapIndex >= 0 ? `[${assignment.mapIndex}]` : "";
  return `task "${assignment.taskId}${index}"`;
}

export function callbackSubject(assignment: CallbackAssignment): string {
  const { groupId, mapIndex, run, taskId } = assignment;
  if (groupId) return `group "${groupId}${mapIndex === undefined ? "" : `[${mapIndex}]`}"`;
  return taskId === null ? `run "${run.runId}"` : `task "${taskId}"`;
}
