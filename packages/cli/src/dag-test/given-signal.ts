import type { GivenSignal } from "@tradewind/testing";
import { usageError } from "../errors.ts";
import { parseDuration, parseJson } from "../input/values.ts";

/** If the key contains an `@`, the last one counts. */
const LATER = /^(.+)@(\d+(?:\.\d+)?(?:ms|s|m|h|d|w))$/;

/** `key=json` or `key`; `key@10m=json` is sent ten minutes after the start of the run. */
export function parseTestSignal(text: string): GivenSignal {
  const equals = text.indexOf("=");
  const name = equals < 0 ? text : text.slice(0, equals);
  if (name === "") throw usageError("--signal needs a signal key.", "example: --signal order.paid=7");
  const [, key = name, delay] = LATER.exec(name) ?? [];
  if (delay === undefined && name.includes("@")) {
    // Do not treat it as a key: no task would receive such a signal.
    throw usageError(
      `--signal ${name}: "${name.slice(name.lastIndexOf("@") + 1)}" after "@" is not a duration.`,
      `example: --signal order.paid@10m=7; for a key that contains "@": --signal '${name}@0s'`,
    );
  }
  const value = equals < 0 ? null : parseJson(text.slice(equals + 1), `--signal ${name}`);
  return { key, value, ...(delay !== undefined && { after: parseDuration(delay) }) };
}
