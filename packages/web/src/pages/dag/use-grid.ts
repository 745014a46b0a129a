/** The grid of a DAG as loaded: the latest runs, older ones on demand, and single runs that have changed. */
import { type InfiniteData, keepPreviousData, useQueryClient } from "@tanstack/react-query";
import { useCallback, useMemo, useRef } from "react";
import { $api, api } from "../../api/client.ts";
import { type GridAnswer, type GridModel, gridModel, withRun } from "../../grid/grid-model.ts";
import { useLive } from "../../live/live.ts";
import { useThrottled } from "../../live/throttled.ts";

const GRID_RUNS = 100;

export interface GridFilter {
  readonly state?: string | undefined;
  readonly runType?: string | undefined;
}

export function useGrid(dagId: string, { runType, state }: GridFilter) {
  const queries = useQueryClient();
  const init = useMemo(
    () => ({
      params: {
        path: { dag_id: dagId },
        query: {
          runs: GRID_RUNS,
          ...(state !== undefined && { state: state as "failed" }),
          ...(runType !== undefined && { run_type: runType as "manual" }),
        },
      },
    }),
    [dagId, state, runType],
  );
  const query = $api.useInfiniteQuery("get", "/ui/dags/{dag_id}/grid", init, {
    pageParamName: "before",
    initialPageParam: "",
    getNextPageParam: (last) => last.next_before ?? undefined,
    // Only of the same DAG: another one has other rows.
    placeholderData: (before, of) => (isOfDag(of?.queryKey, dagId) ? keepPreviousData(before) : undefined),
  });
  const pages = query.data?.pages;
  const model = useMemo<GridModel | undefined>(
    () => pages && gridModel(pages as unknown as readonly GridAnswer[]),
    [pages],
  );

  /** Reads one run again and replaces its column; all of them, if the tasks have changed. */
  const refreshRun = useCallback(
    async (runId: string) => {
      const key = ["get", "/ui/dags/{dag_id}/grid", init];
      const { data } = await api.GET("/ui/dags/{dag_id}/grid/runs/{dag_run_id}", {
        params: { path: { dag_id: dagId, dag_run_id: runId } },
      });
      const before = queries.getQueryData<InfiniteData<GridAnswer>>(key);
      if (data === undefined || before === undefined) return;
      const after = withRun(before.pages, data as unknown as Parameters<typeof withRun>[1]);
      if (after === undefined) await queries.invalidateQueries({ queryKey: key });
      else queries.setQueryData(key, { ...before, pages: [...after] });
    },
    [queries, init, dagId],
  );
  return { query, model, refreshRun };
}

/** More changed runs than this are read together with all others. */
const MOST_SINGLE = 6;
/** Between two readings. */
const GAP_MS = 250;

/** Follows the live stream: single runs are read again as they change, one after the other. */
export function useLiveGrid(
  dagId: string,
  query: { readonly refetch: (options: { readonly cancelRefetch: boolean }) => Promise<unknown> },
  refreshRun: (runId: string) => Promise<void>,
): (runId: string) => void {
  const dirty = useRef(new Set<string>());
  const isAll = useRef(false);
  const isBusy = useRef(false);
  const read = useThrottled(async () => {
    if (isBusy.current) return;
    isBusy.current = true;
    try {
      const runs = [...dirty.current];
      const all = isAll.current || runs.length > MOST_SINGLE;
      dirty.current.clear();
      isAll.current = false;
      if (all) await query.refetch({ cancelRefetch: false });
      else await Promise.all(runs.map(refreshRun));
    } catch {
      // The query shows the next failure of its own; a deleted run disappears with the next reading of all.
      isAll.current = true;
    } finally {
      isBusy.current = false;
    }
    if (dirty.current.size > 0) read();
  }, GAP_MS);
  const onRun = useCallback(
    (runId: string) => {
      dirty.current.add(runId);
      read();
    },
    [read],
  );
  useLive(`dag:${dagId}`, (message) => {
    if ("isLost" in message || !("runs" in message) || !("dag" in message)) isAll.current = true;
    else {
      if (message.dag !== null || message.runs.some(({ state }) => state === null)) isAll.current = true;
      for (const { run_id } of message.runs) dirty.current.add(run_id);
    }
    read();
  });
  return onRun;
}

function isOfDag(key: readonly unknown[] | undefined, dagId: string): boolean {
  const init = key?.[2] as { params?: { path?: { dag_id?: string } } } | undefined;
  return init?.params?.path?.dag_id === dagId;
}
