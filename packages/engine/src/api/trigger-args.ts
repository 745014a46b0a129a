/** How the arguments of a trigger are shown: without secrets, as JSON and as one line of text. */
import type { Json, TriggerCall } from "@tradewind/sdk/manifest";
import { durationText } from "@tradewind/sdk/wording";
import { ANY_KIND, isJointKind, membersOf } from "../model/joint-wait.ts";
import { maskSecrets } from "./secret-names.ts";

type Described = Pick<TriggerCall, "args" | "kind">;

/** The arguments with secrets masked. The members of a joint wait are named by the author: a name masks no member. */
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
 * `path=/in/x.csv, interval=5 s`, or, for a joint wait, `all of f: tradewind.file(path=/in/x.csv), …`. Secrets are
 * masked. The arguments of each trigger are cut after `limit` characters.
 */
export function argsText(trigger: Described, limit = Number.POSITIVE_INFINITY): string {
  const members = checkedMembers(trigger);
  if (members.length === 0) return shortened(plainArgs(maskSecrets(trigger.args)), limit);
  const isList = (trigger.args as { readonly list?: Json }).list === true;
  const texts = members.map(([name, call]) => {
    const text = isJointKind(call.kind) ? `(${argsText(call, limit)})` : triggerText(call, limit);
    return isList ? text : `${name}: ${text}`;
  });
  return `${trigger.kind === ANY_KIND ? "first of" : "all of"} ${texts.join(", ")}`;
}

/** `tradewind.file(path=/in/x.csv)`; a joint wait needs no kind: its text begins with `all of` or `first of`. */
export function triggerText(trigger: Described, limit = Number.POSITIVE_INFINITY): string {
  const text = argsText(trigger, limit);
  if (checkedMembers(trigger).length > 0) return text;
  return text === "" ? trigger.kind : `${trigger.kind}(${text})`;
}

/** None when one of them is not a call of a trigger: then the arguments are shown like those of any trigger. */
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
