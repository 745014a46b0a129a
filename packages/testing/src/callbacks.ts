/** Callbacks that no attempt is there to run: those of the DAG, and of a task that its trigger ended. */
import type { Instance } from "@tradewind/engine/model";
import type { CallbackCall, Program, TaskHost } from "@tradewind/sdk/program";
import type { Journal } from "./journal.ts";

type OfRun = Pick<CallbackCall, "run" | "conf">;

export class Callbacks {
  readonly #program: Program;
  readonly #journal: Journal;
  readonly #ofRun: OfRun;

  constructor(program: Program, journal: Journal, ofRun: OfRun) {
    this.#program = program;
    this.#journal = journal;
    this.#ofRun = ofRun;
  }

  /** `instance` null: of the DAG. */
  async run(
    instance: Instance | null,
    event: CallbackCall["event"],
    error: CallbackCall["error"] = null,
  ): Promise<void> {
    const taskId = instance?.node.id ?? null;
    const host: TaskHost = {
      ...this.#journal.host(taskId ?? "", instance?.mapIndex ?? -1),
      abort: new AbortController().signal,
      // A callback has no steps, and looks at nothing.
      recall: async () => ({}),
      remember: async () => {},
      inStep: (_name, work) => work(),
      currentStep: () => null,
      check: async () => undefined,
    };
    const tryNumber = instance?.tryNumber ?? 1;
    const done = await this.#program.callback({ taskId, event, tryNumber, error, host, ...this.#ofRun });
    if (done.ok) return;
    host.log("error", `callback for ${event} failed: ${done.error.message}`, { stack: done.error.stack });
  }
}
