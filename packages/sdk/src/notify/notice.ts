/**
 * Notices: messages about events that need no function of the author. They are data: the engine delivers them without a
 * process for user code. Deadlines and callbacks take them.
 */
import { refuse } from "../check/definition-errors.ts";
import { DagDefinitionError, show } from "../check/errors.ts";
import { knownOptions } from "../check/option-check.ts";
import { jsonCopy } from "../check/output-check.ts";
import type { Json, NoticeAction, NoticesManifest } from "../manifest.ts";
import { type AnySignal, isSignal, type Signal } from "../signal/signal.ts";
import { whyNotSendable } from "../signal/signal-key.ts";

/**
 * The type of {@link webhook}, {@link email} and {@link sendSignal}.
 * @example const notices: Notice[] = [webhook("pager"), sendSignal(signal("sales.late"))];
 */
export interface Notice {
  readonly kind: "notice";
  readonly action: NoticeAction;
}

/**
 * The value of a callback option: a function, a notice, or a list of both.
 * @example const onFailure: CallbackOption<Callback> = [webhook("pager"), (ctx) => notify(ctx.run.id)];
 */
export type CallbackOption<Function> = Function | Notice | readonly (Function | Notice)[];

/**
 * Posts the event as JSON to an address, or to the address of a connection with its credentials.
 * @example dag("sales", { onFailure: webhook("pager") }, build);
 */
export function webhook(to: string): Notice {
  if (typeof to !== "string" || to === "")
    throw bad(`webhook() takes an http address or the id of a connection, got ${show(to)}`);
  if (/^[a-z][a-z0-9+.-]*:/i.test(to) && !isHttpAddress(to))
    throw bad(`webhook(): ${show(to)} is no address that begins with http:// or https://`);
  return notice({ kind: "webhook", to });
}

/**
 * Sends the event by e-mail through the SMTP server of a connection, whose `extra.from` is the sender.
 * @example d.task("load", { onFailure: email({ to: "ops@shop.test", connection: "mail" }) }, () => publish());
 */
export function email(options: {
  readonly to: string | readonly string[];
  readonly connection: string;
}): Notice {
  const o = knownOptions(options, ["to", "connection"], "email()");
  const to: readonly unknown[] = Array.isArray(o["to"]) ? o["to"] : [o["to"]];
  if (to.length === 0 || !to.every(isMailAddress))
    throw bad(`email(): to takes one address or several, e.g. "ops@example.com", got ${show(o["to"])}`);
  const connection = o["connection"];
  if (typeof connection !== "string" || connection === "")
    throw bad(`email(): connection is the id of a connection to an SMTP server, got ${show(connection)}`);
  return notice({ kind: "email", to, connection });
}

/**
 * Sends a signal exactly once, with the given value or with the event.
 *
 * @example
 * ```ts
 * const failed = signal<{ dag: string }>("failed");
 * dag("sales", { onFailure: sendSignal(failed, { dag: "sales" }) }, build);
 * ```
 */
export function sendSignal<Value, Sent>(signal: Signal<Value, Sent>, value?: Sent): Notice {
  const given: unknown = signal;
  if (!isSignal(given)) throw bad(`sendSignal() takes the result of signal(), got ${show(given)}`);
  const { namespace, key }: AnySignal = given;
  const problem = whyNotSendable({ namespace, key });
  if (problem !== null) throw new DagDefinitionError("TW_BAD_SIGNAL", `sendSignal(): ${problem}`);
  const refused = (message: string) => new DagDefinitionError("TW_BAD_SIGNAL", `sendSignal(): ${message}`);
  if (value === undefined) return notice({ kind: "signal", namespace, key });
  const json: Json = jsonCopy(value, { root: "value", notJson: refused, tooLarge: refused });
  return notice({ kind: "signal", namespace, key, value: json });
}

/** Compares the shape, not the class: a notice may come from another copy of the SDK. */
export function isNotice(value: unknown): value is Notice {
  return typeof value === "object" && value !== null && (value as Notice).kind === "notice";
}

type CallbackName = "onSuccess" | "onFailure" | "onRetry";

/** The functions of one callback option in order, and its notices. */
function callbackOption<Function>(
  o: Readonly<Record<string, unknown>>,
  name: CallbackName,
  where: string,
): { readonly functions: readonly Function[]; readonly notices: readonly NoticeAction[] } {
  const given: readonly unknown[] = Array.isArray(o[name]) ? o[name] : o[name] === undefined ? [] : [o[name]];
  const wrong = given.findIndex((each) => typeof each !== "function" && !isNotice(each));
  if (wrong >= 0)
    refuse(
      bad(
        `${where}: ${name} takes a function, webhook(), email(), sendSignal() or a list of them, got ${show(given[wrong])}`,
      ),
    );
  return {
    functions: given.filter((each) => typeof each === "function") as Function[],
    notices: given.filter(isNotice).map(({ action }) => action),
  };
}

/** The result of the callback options: flags for the manifest, the functions, and the notices. */
export function callbackOptions<Function>(o: Readonly<Record<string, unknown>>, where: string) {
  const success = callbackOption<Function>(o, "onSuccess", where);
  const failure = callbackOption<Function>(o, "onFailure", where);
  const retry = callbackOption<Function>(o, "onRetry", where);
  const notices: NoticesManifest = {
    ...(success.notices.length > 0 && { success: success.notices }),
    ...(failure.notices.length > 0 && { failure: failure.notices }),
    ...(retry.notices.length > 0 && { retry: retry.notices }),
  };
  return {
    functions: { onSuccess: success.functions, onFailure: failure.functions, onRetry: retry.functions },
    callbacks: {
      success: success.functions.length > 0,
      failure: failure.functions.length > 0,
      retry: retry.functions.length > 0,
    },
    /** Omitted if there are none, so that other manifests do not change. */
    notices: Object.keys(notices).length > 0 ? { notices } : {},
  };
}

/** A syntax check only: no space, no bracket, and nothing that could end a line of the protocol. */
function isMailAddress(value: unknown): value is string {
  return typeof value === "string" && value.length <= 320 && /^[^\s<>@,;:"()]+@[^\s<>@,;:"()]+$/.test(value);
}

function isHttpAddress(value: string): boolean {
  try {
    return /^https?:$/.test(new URL(value).protocol);
  } catch {
    return false;
  }
}

function notice(action: Notice["action"]): Notice {
  return Object.freeze({ kind: "notice", action: Object.freeze(action) });
}

function bad(message: string): DagDefinitionError {
  return new DagDefinitionError("TW_BAD_OPTION", message);
}
