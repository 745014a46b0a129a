/** Explains why the log of a task has no lines, or a run no tasks. */
import { path } from "../client/client.ts";
import type { DagRun, Task, TaskInstance } from "../client/resources.ts";
import type { InstanceName } from "../client/task-log.ts";
import { instanceName } from "../output/instance-name.ts";
import { withMoments } from "../output/when.ts";
import type { Session } from "../session.ts";
import { plainLine } from "../terminal.ts";
import { type Cause, causesOf } from "./causes.ts";
import { RunFacts, type Verdict } from "./run-facts.ts";

/** @param instance undefined: its run has not started. */
export async function explainEmptyLog(
  session: Session,
  name: InstanceName,
  { instance, tryNumber }: { readonly instance: TaskInstance | undefined; readonly tryNumber: number },
): Promise<void> {
  const facts = new RunFacts(session.client, name.dagId, name.runId);
  const verdict = await facts.verdict(name.taskId, name.mapIndex);
  const task = plainLine(instanceName({ ...verdict, task_id: name.taskId, map_index: name.mapIndex }));
  session.noteSentence(`The log is empty: ${task} ${sentence(verdict, instance, tryNumber)}`);
  if (verdict.state === "failed" || verdict.instances !== null) return;
  for (const line of causeLines(await causesOf(facts, name), 1)) session.noteSentence(line);
}

/** Explains why the tasks of a run have no state yet; returns false if the run has started. */
export async function explainUnstartedRun(session: Session, dagId: string, runId: string): Promise<boolean> {
  const { client } = session;
  const what = `cannot list the tasks of the run ${runId} of ${dagId}`;
  const { state } = await client.get<DagRun>(path`/dags/${dagId}/dagRuns/${runId}`, { what });
  if (state !== "queued") return false;
  session.noteSentence(`The run ${plainLine(runId)} has not started: its tasks have no state yet.`);
  const { tasks } = await client.get<{ tasks: Task[] }>(path`/dags/${dagId}/tasks`, { what });
  const [first] = tasks;
  if (first === undefined) return true;
  const place = { taskId: first.task_id, mapIndex: -1 };
  // The run's version may not have this task; then no cause is shown.
  const causes = await causesOf(new RunFacts(client, dagId, runId), place).catch(() => []);
  for (const line of causeLines(causes, 1)) session.noteSentence(line);
  return true;
}

function sentence(
  { run_state, state }: Verdict,
  instance: TaskInstance | undefined,
  tryNumber: number,
): string {
  if (instance && tryNumber < instance.try_number) return `wrote nothing in try ${tryNumber}.`;
  switch (state) {
    case "success":
      return instance?.start_date ? "wrote nothing; it succeeded." : "did not run; it was marked as success.";
    case "skipped":
      return "was skipped.";
    case "upstream_failed":
      return "did not run, because a task before it failed.";
    case "removed":
      return "is not part of the run's version any more.";
    case "failed":
    case "up_for_retry":
      return failed(instance, tryNumber);
    case "running":
    case "restarting":
      return "is running and has written nothing so far; -f follows it.";
    case "deferred":
    case "up_for_reschedule":
      return `is ${state} and has written nothing so far.`;
    default:
      return run_state === "queued"
        ? "waits for its run to start."
        : `has not started yet (${state ?? "pending"}).`;
  }
}

/** A failing try logs its error. Without a line, it never ran or its file is not on this machine. */
function failed(instance: TaskInstance | undefined, tryNumber: number): string {
  const reason = instance?.reason ? ` (${plainLine(instance.reason)})` : "";
  if (!instance?.start_date) return `failed without having run${reason}.`;
  return `failed${reason}, and try ${tryNumber} has no log file: it was deleted, is on another machine, or the process ended before writing anything.`;
}

function causeLines(causes: readonly Cause[], depth: number): string[] {
  return causes.flatMap(({ because, code, says }) => [
    `${"  ".repeat(depth)}because ${withMoments(plainLine(says))}${code === null ? "" : ` [${code}]`}`,
    ...causeLines(because, depth + 1),
  ]);
}
