import type { components, paths } from "../../api/schema.gen.ts";

/** "SchedulerJob" → "Scheduler", "dag_processor" → "Dag processor". */
export function serviceName(type: string | null): string {
  const words = (type ?? "unknown").replace(/Job$/, "").replace(/(?<=[a-z])(?=[A-Z])|_/g, " ");
  const name = words.charAt(0).toUpperCase() + words.slice(1).toLowerCase();
  return name.replace(/^Dag\b/, "DAG").replace(/^Api$/, "API server");
}

export type Job = components["schemas"]["JobResponse"];
export type Executor = components["schemas"]["ExecutorResponse"];
export type Worker = components["schemas"]["WorkerResponse"];
export type Health = paths["/api/v2/monitor/health"]["get"]["responses"][200]["content"]["application/json"];
