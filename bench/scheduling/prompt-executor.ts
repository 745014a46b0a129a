/** Reports success at once: for measurements of the scheduler alone. */
import type { Assignment, Executor, ExecutorEvent } from "../../packages/engine/src/execute/contract.ts";

export class PromptExecutor implements Executor {
  readonly name = "local";
  readonly type = "local";
  #report: (event: ExecutorEvent) => void = () => {};

  async start(report: (event: ExecutorEvent) => void): Promise<void> {
    this.#report = report;
  }

  submit(assignments: readonly Assignment[]): void {
    const outcome = { kind: "success", output: undefined, skip: [] } as const;
    setImmediate(() => {
      for (const { id: attempt } of assignments)
        this.#report({ type: "ended", attempt, at: Date.now(), outcome });
    });
  }

  cancel(): void {}

  async adopt(): Promise<ReadonlySet<string>> {
    return new Set();
  }

  freeSlots(): number {
    return 1_000;
  }

  slots() {
    return { slots: null, free: 1_000 };
  }

  async stop(): Promise<void> {}
}
