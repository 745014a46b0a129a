/** The trigger of a deferred instance in Airflow's form. */
import { z } from "zod";
import type { WaitedTrigger } from "../../store/list/deferrals.ts";
import { date, iso } from "../server/fields.ts";
import { maskedArgs } from "./trigger-args.ts";

export const waitedTrigger = z
  .object({
    id: z.number(),
    classpath: z.string(),
    kwargs: z.string(),
    created_date: date,
    queue: z.string().nullable(),
    triggerer_id: z.number().nullable(),
  })
  .meta({ id: "TriggerResponse" });

export function showWaitedTrigger(kind: string, trigger: WaitedTrigger): z.output<typeof waitedTrigger> {
  return {
    id: trigger.id,
    classpath: kind,
    kwargs: JSON.stringify(maskedArgs({ kind, args: trigger.args })),
    created_date: iso(trigger.created_at),
    queue: trigger.queue,
    triggerer_id: trigger.triggerer?.id ?? null,
  };
}
