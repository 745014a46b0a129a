/** The author's code that no attempt runs: callbacks, `onSignal`. */
import type { GroupEvent, Instance, SignalFacts } from "@tradewind/engine/model";
import type { CallbackCall, Program, ReactOutcome, TaskHost } from "@tradewind/sdk/program";
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
    const host = this.#host(taskId ?? "", instance?.mapIndex ?? -1);
    const tryNumber = instance?.tryNumber ?? 1;
    await this.#call({ taskId, event, tryNumber, error, host });
  }

  async ofGroup(groupId: string, { event, tryNumber }: GroupEvent): Promise<void> {
    const host = this.#host(groupId, -1);
    await this.#call({ taskId: null, groupId, event, tryNumber, error: null, host });
  }

  async #call(call: Omit<CallbackCall, keyof OfRun>): Promise<void> {
    const { event, host } = call;
    const done = await this.#program.callback({ ...call, ...this.#ofRun });
    if (done.ok) return;
    host.log("error", `callback for ${event} failed: ${done.error.message}`, { stack: done.error.stack });
  }

  /** What a signal means to a task. Never rejects. */
  async ask(taskId: string, tryNumber: number, signal: SignalFacts): Promise<ReactOutcome> {
    const { from: _, ...heard } = structuredClone(signal);
    const host = this.#host(taskId, -1);
    const answer = this.#program.react?.({ taskId, tryNumber, signal: heard, host, ...this.#ofRun });
    return (await answer) ?? { ok: true, action: "NONE" };
  }

  #host(taskId: string, mapIndex: number): TaskHost {
    return {
      ...this.#journal.host(taskId, mapIndex),
      abort: new AbortController().signal,
      // There are no steps here, and nothing is looked at.
      recall: async () => ({}),
      remember: async () => {},
      inStep: (_name, work) => work(),
      currentStep: () => null,
      check: async () => undefined,
    };
  }
}
