/** The engine's drive of a run, with a record of its actions. */
import { Drive, type Firing, type Heard } from "@tradewind/engine/model";
import type { Action } from "../result.ts";

type Note = (action: Omit<Action, "atMs">) => void;

export class NotedDrive extends Drive {
  readonly #note: Note;

  constructor(options: ConstructorParameters<typeof Drive>[0], note: Note) {
    super(options);
    this.#note = note;
  }

  override hear(heard: Heard): Firing[] {
    const firings = super.hear(heard);
    for (const { action, by, taskId } of firings) {
      // The action of the run itself is recorded when it is closed.
      if (taskId === null) continue;
      this.#note({ taskId, action, by: [...new Set(by.map(({ key }) => key))].join(", ") });
    }
    return firings;
  }

  override takeTicks(now: number): string[] {
    const due = super.takeTicks(now);
    for (const taskId of due) this.#note({ taskId, action: "start", by: "its time" });
    return due;
  }

  override close(reason: string): void {
    if (this.closed === null) this.#note({ taskId: null, action: "stop", by: reason });
    super.close(reason);
  }
}
