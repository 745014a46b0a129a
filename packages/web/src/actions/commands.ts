/** Changes to runs and tasks as commands of the command line. Pure. */
import { commandOf } from "./command-text.ts";

export interface TaskRef {
  readonly dagId: string;
  readonly runId: string;
  readonly taskId: string;
  /** Null: all instances of the task. */
  readonly mapIndex: number | null;
}

export interface RunRef {
  readonly dagId: string;
  readonly runId: string;
}

export interface ClearOptions {
  readonly downstream: boolean;
  readonly upstream: boolean;
  readonly onlyFailed: boolean;
  readonly latestVersion: boolean;
}

/** One command per run; instances of maps have one each. */
export function clearTasksCommands(tasks: readonly TaskRef[], options: ClearOptions): string[] {
  return perRun(tasks).flatMap(({ dagId, runId, tasks: own }) => {
    const flags = clearFlags(options);
    const whole = own.filter(({ mapIndex }) => mapIndex === null || mapIndex < 0);
    const items = own.filter(({ mapIndex }) => mapIndex !== null && mapIndex >= 0);
    const base = ["tradewind", "tasks", "clear", dagId, runId];
    return [
      ...(whole.length > 0 ? [[...base, ...whole.map(({ taskId }) => taskId), ...flags]] : []),
      ...items.map(({ mapIndex, taskId }) => [...base, taskId, "--map-index", String(mapIndex), ...flags]),
    ].map((words) => commandOf(...words));
  });
}

function clearFlags(options: ClearOptions): string[] {
  return [
    ...(options.downstream ? ["--downstream"] : []),
    ...(options.upstream ? ["--upstream"] : []),
    ...(options.onlyFailed ? ["--only-failed"] : []),
    ...(options.latestVersion ? ["--latest-version"] : []),
  ];
}

export function markTasksCommands(
  tasks: readonly TaskRef[],
  state: string,
  reach: Pick<ClearOptions, "downstream" | "upstream">,
): string[] {
  return tasks.map(({ dagId, mapIndex, runId, taskId }) =>
    commandOf(
      ...["tradewind", "tasks", "mark", dagId, runId, taskId, state],
      ...(mapIndex !== null && mapIndex >= 0 ? ["--map-index", mapIndex] : []),
      reach.downstream && "--downstream",
      reach.upstream && "--upstream",
    ),
  );
}

/** One command per DAG. */
export function runsCommands(runs: readonly RunRef[], verb: string, flags: readonly string[]): string[] {
  const byDag = Map.groupBy(runs, ({ dagId }) => dagId);
  return [...byDag].map(([dagId, own]) =>
    commandOf("tradewind", "runs", verb, dagId, ...own.map(({ runId }) => runId), ...flags),
  );
}

export interface RunTasks extends RunRef {
  readonly tasks: readonly TaskRef[];
}

export function perRun(tasks: readonly TaskRef[]): RunTasks[] {
  const found = Map.groupBy(tasks, ({ dagId, runId }) => `${dagId}\0${runId}`);
  return [...found.values()].map((own) => ({ dagId: own[0]!.dagId, runId: own[0]!.runId, tasks: own }));
}
