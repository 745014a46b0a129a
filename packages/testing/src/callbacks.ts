/** The author's code that no attempt runs: callbacks, `onSignal`. */
import type { GroupEvent, Instance, SignalFacts } from "@tradewind/engine/model";
import type {
  CallbackCall,
  CallbackOutcome,
  CancelledWait,
  ErrorFacts,
  Program,
  ReactOutcome,
  TaskHost,
} from "@tradewind/sdk/program";
import { guarded } from "./guarded-call.ts";
import type { Journal } from "./journal.ts";
import { programIn, type Triggers } from "./trigger-script.ts";
import type { KeptWait } from "./waits.ts";

const asOutcome = (error: ErrorFacts) => ({ ok: false as const, error });

type OfRun = Pick<CallbackCall, "run" | "conf">;

export class Callbacks {
  readonly #program: Program;
  readonly #journal: Journal;
  readonly #ofRun: OfRun;
  readonly #triggers: Triggers;

  constructor(program: Program, journal: Journal, ofRun: OfRun, triggers: Triggers = {}) {
    this.#program = program;
    this.#journal = journal;
    this.#ofRun = ofRun;
    this.#triggers = triggers;
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

  /** `mapIndex`: of an item of a mapped group, otherwise -1. */
  async ofGroup(groupId: string, mapIndex: number, { event, tryNumber }: GroupEvent): Promise<void> {
    const host = this.#host(groupId, mapIndex);
    await this.#call({ taskId: null, groupId, mapIndex, event, tryNumber, error: null, host });
  }

  /** The `onCancel` of a wait that ended without its event, if there is one. */
  async cancelled({ deferral, instance }: KeptWait, cause: CancelledWait["cause"]): Promise<void> {
    if (!deferral.onCancel) return;
    const { mapIndex, node, tryNumber } = instance;
    const { cancelInputs: inputs, kwargs, name, trigger } = structuredClone(deferral);
    const wait: CancelledWait = { cause, mapIndex, name, kwargs, trigger, ...(inputs && { inputs }) };
    const host = this.#host(node.id, mapIndex);
    const find = (kind: string) => programIn(this.#triggers[kind]) ?? undefined;
    const of = { taskId: node.id, event: "cancel", tryNumber, error: null } as const;
    await this.#call({ ...of, wait, trigger: find, host });
  }

  async #call(call: Omit<CallbackCall, keyof OfRun>): Promise<void> {
    const { event, host } = call;
    const subject = `the callback for ${event}`;
    const done = await guarded<CallbackOutcome>({ host, subject, failed: asOutcome }, (host) =>
      this.#program.callback({ ...call, host, ...this.#ofRun }),
    );
    if (done.ok) return;
    host.log("error", `callback for ${event} failed: ${done.error.message}`, { stack: done.error.stack });
  }

  /** What a signal means to a task. Never rejects. */
  async ask(taskId: string, tryNumber: number, signal: SignalFacts): Promise<ReactOutcome> {
    const { from: _, ...heard } = structuredClone(signal);
    const host = this.#host(taskId, -1);
    const subject = `onSignal of task "${taskId}"`;
    return await guarded<ReactOutcome>({ host, subject, failed: asOutcome }, async (host) => {
      const answer = this.#program.react?.({ taskId, tryNumber, signal: heard, host, ...this.#ofRun });
      return (await answer) ?? { ok: true, action: "NONE" };
    });
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
