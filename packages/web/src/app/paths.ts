/** Addresses of things, for links: `<Link to={runPath(dagId, runId)}>`. The router's own types know only static addresses. */

type Path = "/";

const join = (...parts: readonly string[]): Path => `/${parts.map(encodeURIComponent).join("/")}` as Path;

export const dagPath = (dagId: string): Path => join("dags", dagId);

export const runPath = (dagId: string, runId: string): Path => join("dags", dagId, "runs", runId);

export const taskPath = (dagId: string, runId: string, taskId: string): Path =>
  join("dags", dagId, "runs", runId, "tasks", taskId);

export const backfillPath = (id: number): Path => join("backfills", String(id));

export const assetPath = (id: number): Path => join("assets", String(id));

/** A page of the rail that may be loaded later. */
export const pagePath = (name: string): Path => join(name);
