/** The remedy for an object that does not exist: the command that lists such objects, and a similar name. */
import { basename } from "node:path";
import { nearest } from "@tradewind/sdk/wording";
import { CliError } from "../errors.ts";
import { SourcePaths } from "../output/source-paths.ts";
import { stateName } from "../output/state.ts";
import { type Column, renderTable, truncate } from "../output/table.ts";
import type { Session } from "../session.ts";
import { type Client, type ListCall, path } from "./client.ts";
import { isRecent } from "./find-run.ts";
import { HttpError, type Place } from "./http-error.ts";
import { MAP_INDEX_FORMS } from "./map-index.ts";
import type { Dag, DagRun, ImportProblem, Task, TaskInstance } from "./resources.ts";

/** How many names are compared for a suggestion. */
const SEEN = 1_000;
/** How many instances of a mapped task the error lists. */
const INSTANCES_NAMED = 10;
const LABEL_WIDTH = 40;

/** The command that lists each kind of object outside a DAG, by the first part of its API path. */
const LISTS: Readonly<Record<string, string>> = {
  backfills: "backfill list",
  connections: "connections list",
  pools: "pools list",
  variables: "variables list",
  workers: "workers list --all",
};

/** Adds a remedy to a not-found error. Never rejects. */
export async function withRemedy(error: unknown, session: Session | undefined): Promise<unknown> {
  if (!(error instanceof HttpError) || error.status !== 404 || session === undefined) return error;
  try {
    if (error.code === "MAP_INDEX_REQUIRED") return await instanceRequired(error, session.client);
    const remedy = await remedyFor(error.place, session);
    if (remedy === null) return error;
    const { code, exit, fields, message } = error;
    return new CliError(code, message, { exit, remedy, fields, cause: error });
  } catch {
    // The not-found error itself matters most: report it even if the lookup of a remedy fails.
    return error;
  }
}

/** Lists the instances, so that the user can choose one. */
async function instanceRequired(error: HttpError, client: Client): Promise<CliError> {
  const { code, exit, fields, place } = error;
  const { dagId, runId, taskId } = place;
  if (dagId === null || runId === null || taskId === null) return error;
  const { items, total } = await client.list<TaskInstance>({
    path: path`/dags/${dagId}/dagRuns/${runId}/taskInstances`,
    key: "task_instances",
    what: `cannot list the instances of ${taskId}`,
    query: { task_id: taskId },
    limit: INSTANCES_NAMED,
  });
  const columns: readonly Column<TaskInstance>[] = [
    { title: "INDEX", value: ({ map_index }) => String(map_index), align: "right" },
    ...(items.some((it) => (it.rendered_map_index ?? String(it.map_index)) !== String(it.map_index))
      ? [LABEL]
      : []),
    { title: "STATE", value: ({ state }) => stateName(state) },
  ];
  const rest = `\`tradewind tasks list ${dagId} ${runId}\` lists all ${total}`;
  const lines = [
    `add --map-index <which> (${MAP_INDEX_FORMS})`,
    ...renderTable(items, columns),
    ...(total > items.length ? [rest] : []),
  ];
  const count = `${total} mapped instance${total === 1 ? "" : "s"}`;
  return new CliError(code, `the task ${taskId} has ${count}: choose one of them.`, {
    exit,
    remedy: lines.join("\n    "),
    fields,
    cause: error,
  });
}

const LABEL: Column<TaskInstance> = {
  title: "LABEL",
  value: ({ rendered_map_index: label }) => truncate(label ?? "", LABEL_WIDTH),
};

/** From the outside in: without its DAG, a run cannot exist. */
async function remedyFor(place: Place, session: Session): Promise<string | null> {
  const { client } = session;
  const { collection, dagId, runId, taskId } = place;
  const list = LISTS[collection];
  if (dagId === null || dagId === "~") return list ? `\`tradewind ${list}\` lists those that exist` : null;
  if (!(await exists(client, path`/dags/${dagId}`))) return missingDag(session, dagId);
  if (place.isVersion) return `\`tradewind dags versions ${dagId}\` lists its versions`;
  if (runId === null && taskId !== null) return missingTask(client, dagId, taskId);
  if (runId === null || runId === "~") return null;
  const run = path`/dags/${dagId}/dagRuns/${runId}`;
  if (!(await exists(client, run))) {
    if (isRecent(`@${runId}`)) return `did you mean @${runId}?`;
    const runs = await ids<DagRun>(client, {
      path: path`/dags/${dagId}/dagRuns`,
      key: "dag_runs",
      // A recent run is the most likely one.
      query: { order_by: "-run_after" },
    });
    return `${meant(
      runId,
      runs.map((each) => each.dag_run_id),
    )}\`tradewind runs list ${dagId}\` shows its runs`;
  }
  if (taskId === null) return null;
  // The run's version may have tasks that the current version lacks. For a large map it lists instances only.
  const [instances, tasks] = await Promise.all([
    ids<TaskInstance>(client, { path: `${run}/taskInstances`, key: "task_instances" }),
    ids<Task>(client, { path: path`/dags/${dagId}/tasks`, key: "tasks" }),
  ]);
  const names = [...new Set([...instances, ...tasks].map((each) => each.task_id))];
  if (names.includes(taskId)) return null;
  return `${meant(taskId, names)}\`tradewind tasks list ${dagId} ${runId}\` shows its tasks`;
}

async function missingDag(session: Session, dagId: string): Promise<string> {
  const { client } = session;
  const dags = await ids<Dag>(client, { path: "/dags", key: "dags" });
  const near = meant(
    dagId,
    dags.map((dag) => dag.dag_id),
  );
  return `${near}\`tradewind dags list\` shows all DAGs${await brokenFiles(session, dagId)}`;
}

async function missingTask(client: Client, dagId: string, taskId: string): Promise<string> {
  const tasks = await ids<Task>(client, { path: path`/dags/${dagId}/tasks`, key: "tasks" });
  const near = meant(
    taskId,
    tasks.map((task) => task.task_id),
  );
  return `${near}\`tradewind dags show ${dagId}\` shows its tasks`;
}

/** The DAG may be in a file that fails to load. */
async function brokenFiles(session: Session, dagId: string): Promise<string> {
  const { items, total } = await session.client.list<ImportProblem>({
    path: "/importErrors",
    key: "import_errors",
    what: "cannot list the import errors",
    limit: SEEN,
  });
  const own = items.find(({ filename }) => basename(filename).replace(/\.[^.]*$/, "") === dagId);
  if (own) {
    const paths = SourcePaths.of(session);
    const [problem = ""] = paths.inImportError(own.stack_trace).trim().split("\n", 1);
    return `. ${paths.file(own.filename)} fails to load: ${problem}`;
  }
  if (total === 0) return "";
  return `, \`tradewind dags errors\` ${total === 1 ? "the file that fails to load" : `the ${total} files that fail to load`}`;
}

/** A name with a typo, or a part of a name: run ids are long. */
function meant(id: string, ids: readonly string[]): string {
  const part = id.toLowerCase();
  const near = nearest(id, ids) ?? ids.find((each) => part.length >= 3 && each.toLowerCase().includes(part));
  return near === undefined ? "" : `did you mean "${near}"? `;
}

async function ids<T>(client: Client, of: Pick<ListCall, "path" | "key" | "query">): Promise<readonly T[]> {
  return (await client.list<T>({ ...of, what: "cannot list what there is", limit: SEEN })).items;
}

async function exists(client: Client, at: string): Promise<boolean> {
  try {
    await client.get(at, { what: "cannot find it" });
    return true;
  } catch (error) {
    if (error instanceof HttpError && error.status === 404) return false;
    throw error;
  }
}
