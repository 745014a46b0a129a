/** The log of one try of a task: read in parts, and live while it is written. */
import { useCallback, useEffect, useMemo } from "react";
import { api, BASE } from "../api/client.ts";
import { LogModel } from "./log-model.ts";

export interface TryAddress {
  readonly dagId: string;
  readonly runId: string;
  readonly taskId: string;
  readonly mapIndex: number;
  readonly tryNumber: number;
}

const LOG = "/ui/dags/{dag_id}/runs/{dag_run_id}/task-instances/{task_id}/log/{try_number}";

export function useTaskLog({ dagId, mapIndex, runId, taskId, tryNumber }: TryAddress) {
  const path = useMemo(
    () => ({ dag_id: dagId, dag_run_id: runId, task_id: taskId, try_number: tryNumber }),
    [dagId, runId, taskId, tryNumber],
  );
  const model = useMemo(
    () =>
      new LogModel({
        index: async (after, withTail) =>
          (
            await api.GET(LOG, {
              params: {
                path,
                query: { map_index: mapIndex, after, ...(withTail ? { tail: "true" as const } : {}) },
              },
            })
          ).data!,
        text: async (from, to) =>
          (
            await api.GET(`${LOG}/text`, {
              params: { path, query: { map_index: mapIndex, from, to } },
              parseAs: "text",
            })
          ).data as string,
      }),
    [path, mapIndex],
  );
  const search = useCallback(
    async (q: string, signal: AbortSignal) =>
      (await api.GET(`${LOG}/search`, { params: { path, query: { map_index: mapIndex, q } }, signal })).data!,
    [path, mapIndex],
  );
  useEffect(() => followLog(model, path, mapIndex), [model, path, mapIndex]);
  return { model, search };
}

interface Path {
  readonly dag_id: string;
  readonly dag_run_id: string;
  readonly task_id: string;
  readonly try_number: number;
}

/** Reads the log, and what is added to it while the page is visible. Returns the end of it. */
function followLog(model: LogModel, path: Path, mapIndex: number): () => void {
  let stream: EventSource | null = null;
  let isClosed = false;
  const close = () => {
    stream?.close();
    stream = null;
  };
  const open = () => {
    if (isClosed || stream !== null || document.hidden || model.isOver) return;
    const [dag, run, task] = [path.dag_id, path.dag_run_id, path.task_id].map(encodeURIComponent);
    const query = new URLSearchParams({ map_index: String(mapIndex), offset: String(model.size) });
    // The browser resumes after a failure with the id of the last event, which is a position in the log.
    stream = new EventSource(
      `${BASE}api/v2/dags/${dag}/dagRuns/${run}/taskInstances/${task}/logs/${path.try_number}/stream?${query}`,
    );
    stream.addEventListener("message", () => void model.refresh());
    stream.addEventListener("end", () => {
      close();
      void model.refresh();
    });
  };
  const onVisibility = () => {
    if (document.hidden) close();
    else void model.refresh().then(open);
  };
  document.addEventListener("visibilitychange", onVisibility);
  void model.refresh().then(open);
  return () => {
    isClosed = true;
    document.removeEventListener("visibilitychange", onVisibility);
    close();
  };
}
