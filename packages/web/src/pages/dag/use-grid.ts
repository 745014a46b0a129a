/** The grid of a DAG as loaded: the latest runs, older ones on demand, and single runs that have changed. */
import { type InfiniteData, keepPreviousData, useQueryClient } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";
import { $api, api } from "../../api/client.ts";
import { type GridAnswer, type GridModel, gridModel, withRun } from "../../grid/grid-model.ts";

export const GRID_RUNS = 100;

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
  const model = useMemo<GridModel | undefined>(() => pages && gridModel(pages), [pages]);

  /** Reads one run again and replaces its column; all of them, if the tasks have changed. */
  const refreshRun = useCallback(
    async (runId: string) => {
      const key = ["get", "/ui/dags/{dag_id}/grid", init];
      const { data } = await api.GET("/ui/dags/{dag_id}/grid/runs/{dag_run_id}", {
        params: { path: { dag_id: dagId, dag_run_id: runId } },
      });
      const before = queries.getQueryData<InfiniteData<GridAnswer>>(key);
      if (data === undefined || before === undefined) return;
      const after = withRun(before.pages, data);
      if (after === undefined) await queries.invalidateQueries({ queryKey: key });
      else queries.setQueryData(key, { ...before, pages: [...after] });
    },
    [queries, init, dagId],
  );
  return { query, model, refreshRun };
}

function isOfDag(key: readonly unknown[] | undefined, dagId: string): boolean {
  const init = key?.[2] as { params?: { path?: { dag_id?: string } } } | undefined;
  return init?.params?.path?.dag_id === dagId;
}
