/**
 * `ctx.send`: signals of one attempt. Signals with `onSuccess` are kept here until the attempt has ended and are part
 * of its outcome. If the attempt does not succeed, or its process dies, they are never sent.
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
  /** All calls in order; null: already sent, or rejected. */
  readonly #requested: Promise<SignalToSend | null>[] = [];
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

  /** Closes the attempt. Resolves with the signals of its success after all running sends have ended. */
  async close(): Promise<readonly SignalToSend[]> {
    this.#isClosed = true;
    return (await Promise.all(this.#requested)).filter((each) => each !== null);
  }

  #send(signal: AnySignal, value: unknown, options: SendOptions | undefined): Promise<unknown> {
    const isWithSuccess = options?.onSuccess === true;
    const checked = this.#checked(signal, value, options);
    const done = isWithSuccess ? checked : checked.then((ready) => this.#call.host.send(ready));
    // The author receives the error from the returned promise.
    this.#requested.push(
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
      throw new TaskError("TW_BAD_SIGNAL", `ctx.send takes the result of signal(), got ${show(signal)}`);
    }
    const onSuccess = isWithSuccess(options, `ctx.send(${show(signal.key)})`);
    const problem = whyNotSendable(signal);
    if (problem !== null) throw new TaskError("TW_BAD_SIGNAL", `ctx.send: ${problem}`);
    const step = this.#call.host.currentStep();
    if (onSuccess && step !== null) {
      // After a wait the step is not repeated, so the attempt that succeeds would not have the signal.
      throw new TaskError(
        "TW_STEP_NESTED",
        `ctx.send(${show(signal.key)}) with onSuccess inside ctx.step(${show(step)}) would be lost after a wait; put it outside`,
      );
    }
    const { namespace, key } = signal;
    const node = signal[CONDITION];
    const schema = node.kind === "signal" ? node.schema : null;
    return { namespace, key, value: await valueToSend(key, schema, value) };
  }
}

/** A misspelt option would send the signal at once, which cannot be undone. */
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
