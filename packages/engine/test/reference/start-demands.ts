/** Tracks the tasks of an edited run that must begin because a signal started them. */
import { isFinished, type TaskState } from "../../src/model/index.ts";

interface Row {
  readonly task_id: string;
  readonly state: TaskState;
  readonly try_number: number;
}

export class StartDemands {
  /** By task: the time of its last start. */
  readonly #started = new Map<string, number>();
  readonly #hasBegun: (taskId: string, since: number) => boolean;

  constructor(hasBegun: (taskId: string, since: number) => boolean) {
    this.#hasBegun = hasBegun;
  }

  add(taskId: string, at: number): void {
    this.#started.set(taskId, at);
  }

  /** The task was stopped or marked, or the run was closed before the task began. */
  forget(taskId: string): void {
    this.#started.delete(taskId);
  }

  /** Pending starts are dropped with the run, except the first start of a task that has not begun. */
  endRun(before: Row, after: Row): void {
    const isFirst = isFinished(before.state)
      ? before.state !== "success" && before.try_number > 0
      : before.state === "pending" && before.try_number === 0;
    if (!isFirst || !isFinished(after.state)) this.#started.delete(after.task_id);
  }

  isPending(taskId: string): boolean {
    const since = this.#started.get(taskId);
    return since !== undefined && !this.#hasBegun(taskId, since);
  }
}
