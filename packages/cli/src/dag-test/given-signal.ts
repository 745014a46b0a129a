import type { GivenSignal } from "@tradewind/testing";
import { usageError } from "../errors.ts";
import { parseDuration, parseJson } from "../input/values.ts";

/** Of a key that itself has an `@`, the last one. */
const LATER = /^(.+)@(\d+(?:\.\d+)?(?:ms|s|m|h|d|w))$/;

/** `key=json`, or `key` alone; `key@10m=json` comes ten minutes after the run began. */
export function parseTestSignal(text: string): GivenSignal {
  const equals = text.indexOf("=");
  const name = equals < 0 ? text : text.slice(0, equals);
  if (name === "")
    throw usageError("--signal takes the key of a signal.", "write it like this: --signal order.paid=7");
  const [, key = name, delay] = LATER.exec(name) ?? [];
  if (delay === undefined && name.includes("@")) {
    // Not taken for a key: nobody would ever hear of it.
    throw usageError(
      `--signal ${name}: after "@" comes how long after the beginning, not "${name.slice(name.lastIndexOf("@") + 1)}".`,
      `write it like this: --signal order.paid@10m=7; a key that has an "@" itself: --signal '${name}@0s'`,
    );
  }
  const value = equals < 0 ? null : parseJson(text.slice(equals + 1), `--signal ${name}`);
  return { key, value, ...(delay !== undefined && { after: parseDuration(delay) }) };
}
