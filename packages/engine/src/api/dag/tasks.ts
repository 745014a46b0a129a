/** `/dags/{dag_id}/tasks`: the tasks of the current version, from its manifest. */
import type { DagManifest, TaskManifest } from "@tradewind/sdk/manifest";
import { z } from "zod";
import { inTopologicalOrder } from "../../model/index.ts";
import type { Connection } from "../../store/database/database.ts";
import type { DagRunRow } from "../../store/list/dag-runs.ts";
import { readManifests } from "../../store/list/dag-versions.ts";
import { requireRun } from "../run/dag-runs.ts";
import type { Resource } from "../server/context.ts";
import { id, nullableDate, orderBy } from "../server/fields.ts";
import { notFound, type Problem } from "../server/problem.ts";
import { requireDag } from "./dags.ts";

const timeDelta = z.object({
  __type: z.literal("TimeDelta"),
  days: z.number(),
  seconds: z.number(),
  microseconds: z.number(),
});

const taskDocument = z
  .object({
    task_id: z.string(),
    task_display_name: z.string(),
    owner: z.string().nullable(),
    start_date: nullableDate,
    end_date: nullableDate,
    trigger_rule: z.string(),
    depends_on_past: z.boolean(),
    wait_for_downstream: z.boolean(),
    retries: z.number(),
    queue: z.string(),
    pool: z.string(),
    pool_slots: z.number(),
    execution_timeout: timeDelta.nullable(),
    retry_delay: timeDelta.nullable(),
    retry_exponential_backoff: z.number(),
    priority_weight: z.number(),
    weight_rule: z.string(),
    ui_color: z.string().nullable(),
    ui_fgcolor: z.string().nullable(),
    template_fields: z.array(z.string()),
    downstream_task_ids: z.array(z.string()),
    upstream_task_ids: z.array(z.string()),
    task_group_id: z.string().nullable(),
    doc_md: z.string().nullable(),
    operator_name: z.string(),
    params: z.null(),
    class_ref: z.null(),
    is_mapped: z.boolean(),
    topological_index: z
      .number()
      .describe("Position in topological order: higher than that of each upstream task."),
    task_group_path: z.array(z.string()).describe("The enclosing groups, outermost first."),
    role: z.enum(["work", "setup", "teardown"]),
    teardown_of: z.string().nullable().describe("The setup of a teardown."),
    executor: z.string().nullable().describe("Null: the default of the installation."),
    executor_config: z.record(z.string(), z.any()).describe("Settings for the executor."),
    extra_links: z.array(z.string()),
  })
  .meta({ id: "TaskResponse" });

type TaskDocument = z.output<typeof taskDocument>;

export const tasks: Resource = (app, { database }) => {
  app.get(
    "/api/v2/dags/:dag_id/tasks",
    {
      schema: {
        params: z.object({ dag_id: id }),
        querystring: z.strictObject({ order_by: orderBy(ORDER, "task_id") }),
        response: { 200: z.object({ tasks: z.array(taskDocument), total_entries: z.number() }) },
        tags: ["Task"],
      },
    },
    async ({ params, query }) => {
      const manifest = await currentManifest(database, params.dag_id);
      const shown = manifest === null ? [] : showTasks(manifest);
      return { tasks: shown.sort(comparing(query.order_by)), total_entries: shown.length };
    },
  );

  app.get(
    "/api/v2/dags/:dag_id/tasks/:task_id",
    {
      schema: {
        params: z.object({ dag_id: id, task_id: id }),
        response: { 200: taskDocument },
        tags: ["Task"],
      },
    },
    async ({ params }) => {
      const manifest = await currentManifest(database, params.dag_id);
      const task = manifest && showTasks(manifest).find((each) => each.task_id === params.task_id);
      if (!task) throw notFound(`DAG "${params.dag_id}" has no task "${params.task_id}"`);
      return task;
    },
  );
};

const SORTABLE = [
  "task_id",
  "task_display_name",
  "owner",
  "start_date",
  "end_date",
  "trigger_rule",
  "depends_on_past",
  "wait_for_downstream",
  "retries",
  "queue",
  "pool",
  "pool_slots",
  "priority_weight",
  "weight_rule",
  "operator_name",
  "is_mapped",
  "topological_index",
] as const;

/** @throws If the run does not exist, or its version of the DAG has no such task. */
export async function requireTask(
  connection: Connection,
  params: { readonly dag_id: string; readonly dag_run_id: string; readonly task_id: string },
): Promise<void> {
  const run = await requireRun(connection, params);
  const manifest = (await readManifests(connection, [run.version_id])).get(run.version_id);
  if (!manifest?.tasks.some(({ taskId }) => taskId === params.task_id)) throw noTask(run, params.task_id);
}

export function noTask(run: Pick<DagRunRow, "dag_id" | "run_id">, taskId: string): Problem {
  return notFound(`Run "${run.run_id}" of DAG "${run.dag_id}" has no task "${taskId}"`);
}

const ORDER: Readonly<Record<string, string>> = Object.fromEntries(SORTABLE.map((field) => [field, field]));

function comparing(order: readonly string[]) {
  return (a: TaskDocument, b: TaskDocument): number => {
    for (const key of [...order, "task_id"]) {
      const field = key.replace(/^-/, "") as (typeof SORTABLE)[number];
      const [left, right] = [a[field] ?? "", b[field] ?? ""];
      if (left !== right) return left < right === key.startsWith("-") ? 1 : -1;
    }
    return 0;
  };
}

/** null: no version of the DAG has ever loaded. */
async function currentManifest(connection: Connection, dagId: string): Promise<DagManifest | null> {
  const { version_id } = await requireDag(connection, dagId);
  return version_id === null
    ? null
    : ((await readManifests(connection, [version_id])).get(version_id) ?? null);
}

/** In topological order. */
function showTasks(manifest: DagManifest): TaskDocument[] {
  const down = new Map<string, string[]>();
  for (const { taskId, upstream } of manifest.tasks)
    for (const parent of upstream) down.set(parent, [...(down.get(parent) ?? []), taskId]);
  const parents = new Map(manifest.groups.map(({ groupId, parent }) => [groupId, parent]));
  return inTopologicalOrder(manifest).map((task, index) => ({
    ...show(manifest, task),
    downstream_task_ids: down.get(task.taskId) ?? [],
    topological_index: index,
    task_group_path: groupPath(task.group, parents),
  }));
}

function groupPath(group: string | null, parents: ReadonlyMap<string, string | null>): string[] {
  const path: string[] = [];
  for (let each = group; each !== null; each = parents.get(each) ?? null) path.unshift(each);
  return path;
}

type Placed = "downstream_task_ids" | "task_group_path" | "topological_index";

function show(manifest: DagManifest, task: TaskManifest): Omit<TaskDocument, Placed> {
  return {
    task_id: task.taskId,
    task_display_name: task.taskId,
    owner: manifest.owner,
    start_date: manifest.start,
    end_date: manifest.end,
    trigger_rule: task.rule.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    depends_on_past: task.dependsOnPast,
    wait_for_downstream: task.waitForDownstream,
    retries: task.retries,
    queue: task.queue,
    pool: task.pool,
    pool_slots: task.poolSlots,
    execution_timeout: task.timeoutMs === null ? null : delta(task.timeoutMs),
    retry_delay: delta(task.retryDelayMs),
    // The factor; 0 for a constant delay.
    retry_exponential_backoff: task.retryBackoff <= 1 ? 0 : task.retryBackoff,
    priority_weight: task.priority,
    weight_rule: task.weightRule,
    ui_color: null,
    ui_fgcolor: null,
    template_fields: [],
    upstream_task_ids: [...task.upstream],
    task_group_id: task.group,
    doc_md: task.docs,
    operator_name: task.operator,
    params: null,
    class_ref: null,
    is_mapped: task.map !== undefined,
    role: task.role,
    teardown_of: task.teardown?.of ?? null,
    executor: task.executor,
    executor_config: { ...task.executorConfig },
    extra_links: [],
  };
}

function delta(ms: number): z.output<typeof timeDelta> {
  const dayMs = 86_400_000;
  const days = Math.floor(ms / dayMs);
  const seconds = Math.floor((ms - days * dayMs) / 1000);
  return { __type: "TimeDelta", days, seconds, microseconds: Math.round((ms % 1000) * 1000) };
}
