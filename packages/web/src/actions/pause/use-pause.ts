/** Pauses the schedule of a DAG, or resumes it: shown at once, taken back if the server rejects it, and with an undo. */
import { useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { toast } from "sonner";
import { messageOf } from "../../api/problem.ts";
import { apiPath, send } from "../api-call.ts";
import { commandOf, type Request } from "../command-text.ts";

type SetPaused = (dagId: string, isPaused: boolean) => Promise<void>;

/** Answers about DAGs that say whether one is paused. */
const SHOWN_IN = ["/ui/dags", "/api/v2/dags/{dag_id}/details"];

export function useSetPaused(): SetPaused {
  const queries = useQueryClient();
  return useCallback(
    async function setPaused(dagId: string, isPaused: boolean): Promise<void> {
      const show = (value: boolean) =>
        queries.setQueriesData(
          { predicate: ({ queryKey }) => SHOWN_IN.includes(String(queryKey[1])) },
          (data) => withPause(data, dagId, value),
        );
      show(isPaused);
      try {
        await send(pauseRequest(dagId, isPaused));
      } catch (error) {
        show(!isPaused);
        toast.error(`"${dagId}" was not ${isPaused ? "paused" : "resumed"}: ${messageOf(error)}`);
        return;
      }
      toast(
        isPaused
          ? `Paused "${dagId}": no further scheduled run starts`
          : `Resumed the schedule of "${dagId}"`,
        {
          action: { label: "Undo", onClick: () => void setPaused(dagId, !isPaused) },
        },
      );
      void queries.invalidateQueries({ queryKey: ["get", "/ui/dags"] });
      void queries.invalidateQueries({ queryKey: ["get", "/ui/dags/facets"] });
      void queries.invalidateQueries({ queryKey: ["get", "/api/v2/dags/{dag_id}/details"] });
    },
    [queries],
  );
}

export function pauseRequest(dagId: string, isPaused: boolean): Request {
  return { method: "PATCH", path: apiPath`/dags/${dagId}`, body: { is_paused: isPaused } };
}

export function pauseCommand(dagIds: readonly string[], isPaused: boolean): string {
  return commandOf("tradewind", "dags", isPaused ? "pause" : "unpause", ...dagIds);
}

/** The same answer, in any of its forms, with another value for one DAG. */
function withPause(data: unknown, dagId: string, isPaused: boolean): unknown {
  if (Array.isArray(data)) return data.map((each) => withPause(each, dagId, isPaused));
  if (typeof data !== "object" || data === null) return data;
  if ("dag_id" in data && "is_paused" in data)
    return data.dag_id === dagId ? { ...data, is_paused: isPaused, pause_reason: null } : data;
  if ("pages" in data) return { ...data, pages: withPause(data.pages, dagId, isPaused) };
  if ("dags" in data) return { ...data, dags: withPause(data.dags, dagId, isPaused) };
  return data;
}
