import type { components, paths } from "../../api/schema.gen.ts";

export type Job = components["schemas"]["JobResponse"];
export type Executor = components["schemas"]["ExecutorResponse"];
export type Worker = components["schemas"]["WorkerResponse"];
export type Health = paths["/api/v2/monitor/health"]["get"]["responses"][200]["content"]["application/json"];
