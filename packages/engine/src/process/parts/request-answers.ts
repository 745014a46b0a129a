/** The answers to what a task requests while it runs, for executors of this process and for the task execution API. */
import { answerFrom } from "../../execute/attempt/answer-request.ts";
import { taskServices } from "../../run/dispatch/task-services.ts";
import { checkEngineTrigger } from "../../trigger/engine/engine-triggers.ts";
import type { ServiceParts } from "./service-parts.ts";

export function answerRequests({
  database,
  secretBox,
  wakeUps,
}: Pick<ServiceParts, "database" | "secretBox" | "wakeUps">): ReturnType<typeof answerFrom> {
  const onNews: Parameters<typeof taskServices>[0]["onNews"] = (news) => wakeUps.send(news);
  return answerFrom(taskServices({ database, secretBox, check: checkEngineTrigger, onNews }));
}
