/** Validates the arguments of `listen` before anything is claimed: a mistake must not look like a lack of signals. */
import { EngineError } from "../service/errors.ts";
import { readPosition, type SignalFilter, type SignalStart } from "./signal.ts";
import type { ListenOptions, SignalWatcher } from "./signal-service.ts";

const MAX_NAME = 250;

export interface ListenRequest {
  readonly name: string | null;
  readonly filter: SignalFilter;
  readonly watcher: SignalWatcher;
  readonly options: ListenOptions;
}

/** @throws SIGNAL_INVALID, SIGNAL_POSITION_INVALID */
export function requireListen({ filter, name, options, watcher }: ListenRequest): void {
  if (name !== null && !isName(name))
    throw refused(
      `its name must have 1 to ${MAX_NAME} characters, got ${show(name)}. Use null for a listener without a name, which stores nothing.`,
    );
  if (typeof filter !== "object" || filter === null)
    throw refused(`its filter must be like { key: "order.*" }, got ${show(filter)}.`);
  const keys: readonly unknown[] = Array.isArray(filter.key) ? filter.key : [filter.key ?? "*"];
  for (const text of [...keys, filter.namespace ?? "default", filter.sender ?? "x"])
    if (!isName(text))
      throw refused(
        `keys, namespace and sender of its filter have 1 to ${MAX_NAME} characters, got ${show(text)}.`,
      );
  if (typeof (watcher as Partial<SignalWatcher> | null)?.process !== "function")
    throw refused("its third argument must have a function: { process: (signals) => … }.");
  if (options.from !== undefined) requireStart(options.from);
}

function requireStart(from: SignalStart): void {
  if (from === "now" || from === "start") return;
  if (typeof from === "object" && from !== null) {
    if ("position" in from && typeof from.position === "string") {
      readPosition(from.position);
      return;
    }
    if ("afterVersion" in from && Number.isSafeInteger(from.afterVersion) && from.afterVersion >= 0) return;
    if ("since" in from && from.since instanceof Date && !Number.isNaN(from.since.getTime())) return;
  }
  throw refused(
    `its "from" must be "now", "start", { afterVersion: 12 }, { since: new Date(…) } or { position: "…" }, got ${show(from)}.`,
  );
}

function isName(text: unknown): text is string {
  return typeof text === "string" && text !== "" && text.length <= MAX_NAME && !text.includes("\0");
}

function show(value: unknown): string {
  if (typeof value === "function") return "a function";
  return (JSON.stringify(value) ?? String(value)).slice(0, 80);
}

function refused(why: string): EngineError {
  return new EngineError("SIGNAL_INVALID", `Invalid listen request: ${why}`);
}
