/**
 * The owner of the running code. Node carries it through every callback and every await, so that thousands of triggers
 * can share one event loop and their output, errors, stalls and exits are attributed to each of them.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Json } from "@tradewind/sdk/manifest";
import type { LogLevel } from "@tradewind/sdk/program";

export interface Scope {
  /** The serial of a trigger, or the path of a bundle whose top level runs. */
  readonly who: number | string;
  log(level: LogLevel, message: string, fields?: Readonly<Record<string, Json>>): void;
}

/** The key under which the watchdog, which evaluates an expression in the paused main thread, finds `currentScope().who`. */
export const CULPRIT = "tradewind.culprit";

const storage = new AsyncLocalStorage<Scope>();

Object.assign(globalThis, { [Symbol.for(CULPRIT)]: () => storage.getStore()?.who ?? null });

export function inScope<T>(scope: Scope, work: () => T): T {
  return storage.run(scope, work);
}

export function currentScope(): Scope | null {
  return storage.getStore() ?? null;
}
