/** What the page of a task instance reads. */
import { $api } from "../../api/client.ts";
import type { components } from "../../api/schema.gen.ts";

export type Instance = components["schemas"]["TaskInstanceResponse"];
export type Try = components["schemas"]["TaskInstanceHistoryResponse"];

export interface TaskAddress {
  readonly dagId: string;
  readonly runId: string;
  readonly taskId: string;
  /** -1: not an instance of a map. */
  readonly mapIndex: number;
}

const BASE = "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances";

function path({ dagId, runId, taskId }: TaskAddress) {
  return { dag_id: dagId, dag_run_id: runId, task_id: taskId };
}

function mapped(address: TaskAddress) {
  return { ...path(address), map_index: address.mapIndex };
}

export function useInstance(address: TaskAddress, enabled: boolean) {
  return $api.useQuery(
    "get",
    `${BASE}/{task_id}/{map_index}`,
    { params: { path: mapped(address) } },
    { enabled },
  );
}

export function useTries(address: TaskAddress, enabled: boolean) {
  return $api.useQuery(
    "get",
    `${BASE}/{task_id}/{map_index}/tries`,
    { params: { path: mapped(address) } },
    { enabled },
  );
}

export function useWhy(address: TaskAddress, enabled = true) {
  return $api.useQuery(
    "get",
    `${BASE}/{task_id}/{map_index}/why`,
    { params: { path: mapped(address) } },
    { enabled },
  );
}

export function useDeferrals(address: TaskAddress) {
  return $api.useQuery("get", `${BASE}/{task_id}/{map_index}/deferrals`, {
    params: { path: mapped(address), query: { limit: 50, include_payload: "true" } },
  });
}

export function useDagTask({ dagId, taskId }: TaskAddress) {
  return $api.useQuery("get", "/api/v2/dags/{dag_id}/tasks/{task_id}", {
    params: { path: { dag_id: dagId, task_id: taskId } },
  });
}

/** The last successful ones, for what is usual. */
export function useUsual({ dagId, taskId }: TaskAddress) {
  return $api.useQuery("get", BASE, {
    params: {
      path: { dag_id: dagId, dag_run_id: "~" },
      query: { task_id: taskId, state: ["success"], limit: 15, order_by: "-id", cursor: "" },
    },
  });
}

export function medianMs(instances: readonly Instance[]): number | null {
  const found = instances
    .map(({ duration }) => duration)
    .filter((duration) => duration !== null)
    .sort((a, b) => a - b);
  return found.length === 0 ? null : found[found.length >> 1]! * 1_000;
}
