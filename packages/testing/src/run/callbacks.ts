/** Author code that runs outside of attempts: callbacks and `onSignal`. */
import type {
  GroupChange,
  GroupEvent,
  Instance,
  NoticeEvent,
  RunModel,
  SignalFacts,
} from "@tradewind/engine/model";
import type { Json } from "@tradewind/sdk/manifest";
import type {
  CallbackCall,
  CallbackOutcome,
  CancelledWait,
  ErrorFacts,
  Program,
  ReactOutcome,
  TaskHost,
} from "@tradewind/sdk/program";
import { programIn, type Triggers } from "../trigger/trigger-script.ts";
import type { KeptWait } from "../trigger/waits.ts";
import { guarded } from "./guarded-call.ts";
import type { Journal } from "./journal.ts";
import { Notices, type NoticesParts } from "./notices.ts";

const asOutcome = (error: ErrorFacts) => ({ ok: false as const, error });

type OfRun = Pick<CallbackCall, "run" | "conf">;

export interface CallbacksParts extends Omit<NoticesParts, "journal"> {
  readonly conf: Json;
}

export class Callbacks {
  readonly #program: Program;
  readonly #journal: Journal;
  readonly #ofRun: OfRun;
  readonly #triggers: Triggers;
  readonly #model: RunModel;
  readonly #notices: Notices;

  constructor(
    program: Program,
    journal: Journal,
    { clock, conf, model, run }: CallbacksParts,
    triggers: Triggers = {},
  ) {
    this.#program = program;
    this.#journal = journal;
    this.#ofRun = { run, conf };
    this.#triggers = triggers;
    this.#model = model;
    this.#notices = new Notices({ clock, journal, model, run });
  }

  async ofTask(instance: Instance, event: NoticeEvent, error: CallbackCall["error"] = null): Promise<void> {
    const { mapIndex, node, tryNumber } = instance;
    this.#notices.ofTask(instance, event, error);
    await this.#call({ taskId: node.id, event, tryNumber, error, host: this.#host(node.id, mapIndex) });
  }

  async ofRun(
    state: string,
    of: { readonly tryNumber: number; readonly reason: string | null },
  ): Promise<void> {
    const event = state === "success" ? "success" : "failure";
    this.#notices.ofRun(this.#program.describe().notices?.[event], event, of);
    await this.#call({ taskId: null, event, tryNumber: of.tryNumber, error: null, host: this.#host("", -1) });
  }

  /** Times out the run: active tasks fail with it. */
  async timedOut(at: number): Promise<void> {
    const isFailed = ({ state }: Instance) => state === "failed";
    const before = new Set([...this.#model.instances()].filter(isFailed));
    this.#model.apply({ type: "halted", at, reason: "run timed out", active: "failed" }, at);
    const error = {
      name: "RunTimedOut",
      message: "the run timed out",
      stack: null,
      code: "TASK_RUN_TIMED_OUT",
    };
    for (const instance of [...this.#model.instances()].filter(isFailed))
      if (!before.has(instance)) await this.ofTask(instance, "failure", error);
  }

  async ofGroup({ groupId, mapIndex, retryAt }: GroupChange, each: GroupEvent): Promise<void> {
    const { event, tryNumber } = each;
    this.#notices.ofGroup(groupId, mapIndex, each, retryAt);
    const host = this.#host(groupId, mapIndex);
    await this.#call({ taskId: null, groupId, mapIndex, event, tryNumber, error: null, host });
  }

  /** Runs the `onCancel` of a wait that ended without its event, if there is one. */
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

  /** Calls the `onSignal` of a task. Never rejects. */
  async callOnSignal(taskId: string, tryNumber: number, signal: SignalFacts): Promise<ReactOutcome> {
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
      // There are no steps here, and no trigger is checked.
      recall: async () => ({}),
      remember: async () => {},
      inStep: (_name, work) => work(),
      currentStep: () => null,
      check: async () => undefined,
    };
  }
}
