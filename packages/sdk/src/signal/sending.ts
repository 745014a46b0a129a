/**
 * `ctx.send`: signals of one attempt. Those that belong to the task's success are kept here until the attempt has
 * ended, and leave with its outcome: if it does not succeed, or its process dies, nobody has ever heard of them.
 */

import { show, TaskError } from "../check/errors.ts";
import { nearest } from "../check/wording.ts";
import type { SendContext, SendOptions } from "../runtime/context.ts";
import type { SignalToSend, TaskCall } from "../runtime/program.ts";
import { CONDITION } from "../schedule/condition.ts";
import { type AnySignal, isSignal, valueToSend } from "./signal.ts";
import { whyNotSendable } from "./signal-key.ts";

export class Outbox {
  readonly #call: TaskCall;
  /** Everything asked for, in that order; null: sent already, or refused. */
  readonly #asked: Promise<SignalToSend | null>[] = [];
  #isClosed = false;

  constructor(call: TaskCall) {
    this.#call = call;
  }

  /** The part of the context that authors see. */
  context(): SendContext {
    return {
      send: (signal: AnySignal, value?: unknown, options?: SendOptions) =>
        this.#send(signal, value, options) as Promise<never>,
    };
  }

  /** The attempt is over. Resolves with what belongs to its success, when no sending is under way any more. */
  async close(): Promise<readonly SignalToSend[]> {
    this.#isClosed = true;
    return (await Promise.all(this.#asked)).filter((each) => each !== null);
  }

  #send(signal: AnySignal, value: unknown, options: SendOptions | undefined): Promise<unknown> {
    const isWithSuccess = options?.onSuccess === true;
    const checked = this.#checked(signal, value, options);
    const done = isWithSuccess ? checked : checked.then((ready) => this.#call.host.send(ready));
    // A refusal is the author's to hear, from the promise that is returned.
    this.#asked.push(
      done.then(
        () => (isWithSuccess ? checked : null),
        () => null,
      ),
    );
    return isWithSuccess ? done.then(() => undefined) : done;
  }

  async #checked(signal: AnySignal, value: unknown, options: SendOptions | undefined): Promise<SignalToSend> {
    if (this.#isClosed) throw new Error("the task has already ended");
    if (!isSignal(signal)) {
      throw new TaskError("TW_BAD_SIGNAL", `ctx.send takes what signal() returned, got ${show(signal)}`);
    }
    const onSuccess = isWithSuccess(options, `ctx.send(${show(signal.key)})`);
    const problem = whyNotSendable(signal);
    if (problem !== null) throw new TaskError("TW_BAD_SIGNAL", `ctx.send: ${problem}`);
    const step = this.#call.host.currentStep();
    if (onSuccess && step !== null) {
      // The step is not done again after a wait, and the attempt that succeeds would know nothing of the signal.
      throw new TaskError(
        "TW_STEP_NESTED",
        `ctx.send(${show(signal.key)}) with onSuccess inside ctx.once(${show(step)}) would be lost after a wait; put it outside`,
      );
    }
    const { namespace, key } = signal;
    const node = signal[CONDITION];
    const schema = node.kind === "signal" ? node.schema : null;
    return { namespace, key, value: await valueToSend(key, schema, value) };
  }
}

/** What is misspelt would be sent at once, and could not be taken back. */
function isWithSuccess(options: unknown, where: string): boolean {
  if (options === undefined) return false;
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw new TaskError("TW_BAD_SIGNAL", `${where}: options must be an object, got ${show(options)}`);
  for (const name of Object.keys(options)) {
    if (name === "onSuccess") continue;
    const near = nearest(name, ["onSuccess"]);
    const remedy = near ? `did you mean "${near}"?` : "the only one is onSuccess";
    throw new TaskError("TW_BAD_SIGNAL", `${where}: unknown option "${name}"; ${remedy}`);
  }
  const { onSuccess = false } = options as { readonly onSuccess?: unknown };
  if (typeof onSuccess === "boolean") return onSuccess;
  throw new TaskError("TW_BAD_SIGNAL", `${where}: onSuccess must be true or false, got ${show(onSuccess)}`);
}
