/** The engine's drive of a run, with a record of its actions. */
import { Drive, type Fact, type Firing } from "@tradewind/engine/model";
import type { Action } from "../result.ts";

type Note = (action: Omit<Action, "atMs">) => void;

export class RecordedDrive extends Drive {
  readonly #record: Note;

  constructor(options: ConstructorParameters<typeof Drive>[0], note: Note) {
    super(options);
    this.#record = note;
  }

  override receive(heard: Fact): Firing[] {
    const firings = super.receive(heard);
    for (const { action, by, taskId } of firings) {
      // The action of the run itself is recorded when it is closed.
      if (taskId === null) continue;
      this.#record({ taskId, action, by: [...new Set(by.map(({ key }) => key))].join(", ") });
    }
    return firings;
  }

  override consumeTicks(now: number): string[] {
    const due = super.consumeTicks(now);
    for (const taskId of due) this.#record({ taskId, action: "start", by: "its time" });
    return due;
  }

  override close(reason: string): void {
    if (this.closed === null) this.#record({ taskId: null, action: "stop", by: reason });
    super.close(reason);
  }
}
