/**
 * `/ui/signals/schedules`: DAGs that are scheduled on several signals together, and which of them have arrived since the
 * last run. As stored by the triggerers: signals that they have not processed yet are not included.
 */
import type { SignalCondition } from "@tradewind/sdk/manifest";
import { z } from "zod";
import { compileCondition, describeState, loadState } from "../../model/index.ts";
import { listSchedules, type ScheduleRow } from "../../store/signal/signal-schedules.ts";
import { scheduleStates } from "../../store/ui/schedule-states.ts";
import type { Resource } from "../server/context.ts";
import { UI_TAG } from "./columns.ts";

const MOST_SHOWN = 100;

const schedulesDocument = z
  .object({
    schedules: z.array(
      z.object({
        dag_id: z.string(),
        is_paused: z.boolean().describe("Or its file no longer has it: signals are not counted."),
        condition: z.string(),
        missing: z.string().nullable().describe("null: the values of its signals are too large to be read."),
        parts: z.array(
          z.object({
            text: z.string(),
            is_met: z.boolean().nullable(),
            version: z.number().nullable().describe("Of the signal that has arrived."),
          }),
        ),
      }),
    ),
    more: z.boolean().describe("There are more schedules on several signals."),
  })
  .meta({ id: "UiSignalSchedules" });

export const uiSignalSchedules: Resource = (app, { database }) => {
  app.get(
    "/ui/signals/schedules",
    { schema: { response: { 200: schedulesDocument }, tags: [UI_TAG.name] } },
    async () => {
      // What a schedule on assets has gathered is shown with its assets.
      const joint = (await listSchedules(database)).filter(
        ({ terms }) => terms.gather === undefined && isJoint(terms.when),
      );
      const shown = joint.slice(0, MOST_SHOWN);
      const states = await scheduleStates(
        database,
        shown.map(({ name }) => name),
      );
      return {
        schedules: shown.map((row) => show(row, states)),
        more: joint.length > shown.length,
      };
    },
  );
};

function show(
  { dagId, isAwake, name, terms }: ScheduleRow,
  states: Awaited<ReturnType<typeof scheduleStates>>,
) {
  const condition = compileCondition(terms.when);
  const state = states.get(name);
  const { leaves, missing, text } = describeState(condition, loadState(condition, state));
  return {
    dag_id: dagId,
    is_paused: !isAwake,
    condition: text,
    missing: state === undefined ? null : missing,
    parts: leaves.map(({ met, text, version }) => ({
      text,
      is_met: state === undefined ? null : met,
      version: met ? version : null,
    })),
  };
}

/** Others fire with every signal: they are never partly met. */
function isJoint(when: SignalCondition): boolean {
  return when.kind === "all"
    ? when.of.length > 1 || when.of.some(isJoint)
    : when.kind === "any" && when.of.some(isJoint);
}
