/** The polls of a triggerer, and the wake-ups that request them. */
import { publishesStates, type Topic } from "../../job/wake-up.ts";

export const EVERYTHING = ["timed", "claim", "engine", "signals", "sweep", "compare"] as const;

export type PendingRead = (typeof EVERYTHING)[number];

/** @param waitsForSteps A trigger of its own waits for a task, or for the start of a run: the most frequent wake-ups. */
export function readsAfter(topic: Topic | "", waitsForSteps: boolean): readonly PendingRead[] {
  if (topic === "") return EVERYTHING;
  if (topic === "triggers") return ["timed", "claim"];
  if (topic === "unwaited") return ["sweep"];
  if (topic === "jobs") return ["claim"];
  if (topic === "dags") return ["timed", "claim", "compare"];
  if (topic === "ended" || topic === "fired" || topic.startsWith("run:")) return ["engine"];
  return waitsForSteps && (topic === "tasks" || publishesStates(topic)) ? ["engine"] : [];
}
