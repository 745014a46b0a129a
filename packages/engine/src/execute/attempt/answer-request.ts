/** Answers the requests of user code, for executors of a process that is connected to the database. */
import type { Json } from "@tradewind/sdk/manifest";
import type { AnswerRequest, Assignment, AttemptPlace, TaskServices } from "../contract.ts";
import { runEndReply } from "./run-end-reply.ts";

export function answerFrom(services: TaskServices): AnswerRequest {
  return async (of, ask, agoMs) => {
    const { dagId, runId } = of.run;
    switch (ask.what) {
      case "output":
        return await services.output(of.dagRunId, ask.taskId, ask.mapIndex);
      case "variable":
        return await services.variable(ask.key);
      case "connection":
        return (await services.connection(ask.connectionId)) as unknown as Json | undefined;
      case "recall":
        return (await services.recall(requirePlace(of))) as unknown as Json;
      case "remember":
        await services.remember(requirePlace(of), ask);
        return null;
      case "startSignals": {
        const versions = of.kind === "attempt" ? (of.startSignals ?? []) : [];
        return (await services.signals(versions)) as unknown as Json;
      }
      case "send":
        return { ...(await services.send(ask.signal, { dagId, runId, taskId: of.taskId ?? "" })) };
      case "check":
        return await services.check(ask.trigger, agoMs, of.run.startedAt);
      case "triggerRun":
        return { ...(await services.triggerRun(ask.request, placeOf(of))) };
      case "runEnd":
        return runEndReply(await services.runEnd(ask.request));
      case "isLatest":
        return await services.isLatest(of.dagRunId);
    }
  };
}

/** null: the assignment is not an attempt. */
function placeOf(of: Assignment): AttemptPlace | null {
  if (of.kind !== "attempt") return null;
  const { dagRunId: runId, id: attempt, mapIndex, taskId, tryNumber } = of;
  return { runId, taskId, mapIndex, tryNumber, attempt };
}

function requirePlace(of: Assignment): AttemptPlace {
  const place = placeOf(of);
  if (place === null) throw new Error("only a task has steps");
  return place;
}
