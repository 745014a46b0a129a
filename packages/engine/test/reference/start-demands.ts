/** Which tasks of an edited run have been started by a signal, and have to begin because of it. */
import { isFinished, type TaskState } from "../../src/model/index.ts";

interface Row {
  readonly task_id: string;
  readonly state: TaskState;
  readonly try_number: number;
}

export class StartDemands {
  /** When each was started last. */
  readonly #started = new Map<string, number>();
  readonly #hasBegun: (taskId: string, since: number) => boolean;

  constructor(hasBegun: (taskId: string, since: number) => boolean) {
    this.#hasBegun = hasBegun;
  }

  add(taskId: string, at: number): void {
    this.#started.set(taskId, at);
  }

  /** It was stopped or marked, or the run was closed before it could begin. */
  forget(taskId: string): void {
    this.#started.delete(taskId);
  }

  /** Starts that wait go with their run, but for the first one of a task that has not begun. */
  endRun(before: Row, after: Row): void {
    const isFirst = isFinished(before.state)
      ? before.state !== "success" && before.try_number > 0
      : before.state === "none" && before.try_number === 0;
    if (!isFirst || !isFinished(after.state)) this.#started.delete(after.task_id);
  }

  isOwed(taskId: string): boolean {
    const since = this.#started.get(taskId);
    return since !== undefined && !this.#hasBegun(taskId, since);
  }
}
