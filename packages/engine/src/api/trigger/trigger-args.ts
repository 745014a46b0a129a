/** Arguments of a trigger for display: without secrets, as JSON and as one line of text. */
import type { Json, TriggerCall } from "@tradewind/sdk/manifest";
import { durationText } from "@tradewind/sdk/wording";
import { z } from "zod";
import { ANY_KIND, isJointKind, membersOf } from "../../model/signal/joint-wait.ts";
import { maskSecrets } from "../server/secret-names.ts";

type Described = Pick<TriggerCall, "args" | "kind">;

/** A stored trigger. */
interface Waited extends Described {
  /** For a wait on all members: the positions of fired members. */
  readonly fired?: readonly number[] | null;
}

export const memberDocument = z.object({ name: z.string(), state: z.enum(["open", "fired"]) });

/** The members of a joint wait, by name or position, with their states; null: not a joint wait. */
export function memberStates(trigger: Waited): z.output<typeof memberDocument>[] | null {
  const members = checkedMembers(trigger);
  return members.length === 0 ? null : members.map(([name], at) => ({ name, state: stateAt(trigger, at) }));
}

function stateAt({ fired }: Waited, at: number): "open" | "fired" {
  return fired?.includes(at) ? "fired" : "open";
}

/** The arguments with secrets masked. Names of members of a joint wait are chosen by the author and mask nothing. */
export function maskedArgs(trigger: Described): Json {
  const members = checkedMembers(trigger);
  if (members.length === 0) return maskSecrets(trigger.args);
  const masked = members.map(([name, call]) => [
    name,
    { ...(maskSecrets(call as unknown as Json) as object), args: maskedArgs(call) },
  ]);
  return { ...(maskSecrets(trigger.args) as object), members: Object.fromEntries(masked) };
}

/**
 * `path=/in/x.csv, interval=5 s`, or, for a joint wait, `all of f: tradewind.file(path=/in/x.csv) [fired], …`. Secrets are
 * masked. The arguments of each trigger are cut after `limit` characters.
 */
export function argsText(trigger: Waited, limit = Number.POSITIVE_INFINITY): string {
  return textOf(trigger, limit, (at) => ` [${stateAt(trigger, at)}]`);
}

/** @param stateOf The suffix for each member of the outermost joint wait. */
function textOf(trigger: Described, limit: number, stateOf: (at: number) => string): string {
  const members = checkedMembers(trigger);
  if (members.length === 0) return shortened(plainArgs(maskSecrets(trigger.args)), limit);
  const isList = (trigger.args as { readonly list?: Json }).list === true;
  const texts = members.map(([name, call], at) => {
    const args = textOf(call, limit, () => "");
    const text = isJointKind(call.kind) ? `(${args})` : called(call.kind, args);
    return `${isList ? "" : `${name}: `}${text}${stateOf(at)}`;
  });
  return `${trigger.kind === ANY_KIND ? "first of" : "all of"} ${texts.join(", ")}`;
}

/** `tradewind.file(path=/in/x.csv)`; the text of a joint wait begins with `all of` or `first of` instead of its kind. */
export function triggerText(trigger: Waited, limit = Number.POSITIVE_INFINITY): string {
  const text = argsText(trigger, limit);
  return checkedMembers(trigger).length > 0 ? text : called(trigger.kind, text);
}

function called(kind: string, args: string): string {
  return args === "" ? kind : `${kind}(${args})`;
}

/** Empty if a member is not a trigger call: the arguments are then shown like those of any trigger. */
function checkedMembers(trigger: Described): (readonly [string, TriggerCall])[] {
  const members = Object.entries(membersOf(trigger));
  return members.every(([, call]) => typeof call?.kind === "string" && call.args !== undefined)
    ? members
    : [];
}

function plainArgs(args: Json): string {
  if (typeof args !== "object" || args === null || Array.isArray(args)) return JSON.stringify(args);
  return Object.entries(args)
    .filter(([, value]) => value !== null)
    .map(([key, value]) => argText(key, value))
    .join(", ");
}

/** `deltaMs: 600000` is shown as `delta=10 m`. */
function argText(key: string, value: Json): string {
  if (typeof value === "number" && /.Ms$/.test(key)) return `${key.slice(0, -2)}=${durationText(value)}`;
  return `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`;
}

function shortened(text: string, limit: number): string {
  return text.length > limit ? `${text.slice(0, limit)}…` : text;
}
