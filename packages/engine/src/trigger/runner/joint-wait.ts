/**
 * Several triggers waited for together, run in one process: the common part of `all` and `any`. Each member has an abort
 * of its own. A member that fails fails the joint wait, and a member that ends the task ends it.
 *
 * The key of the joint event is built from the keys of its members' events. Built-in triggers observe states: without a
 * key, the same payload is the same event. An event of a user-defined trigger without a key is always new, and so is the
 * joint event. Events of time triggers do not contribute to the key.
 */
import { createHash } from "node:crypto";
import type { Json, TriggerCall } from "@tradewind/sdk/manifest";
import type {
  RunningTrigger,
  TriggerAbortKind,
  TriggerHost,
  TriggerProgram,
  TriggerYield,
} from "@tradewind/sdk/program";
import { abortReason } from "./abort-reason.ts";

export type FindMember = (member: TriggerCall) => Promise<TriggerProgram>;

const MAX_TIMER_MS = 2 ** 31 - 1;

/** One member of a joint wait. */
export class Member {
  readonly name: string;
  readonly call: TriggerCall;
  readonly #find: FindMember;
  readonly #host: TriggerHost;
  readonly #abort = new AbortController();
  #running: RunningTrigger | null = null;
  #hasFired = false;

  constructor([name, call]: readonly [string, TriggerCall], find: FindMember, host: TriggerHost) {
    this.name = name;
    this.call = call;
    this.#find = find;
    const stop = (): void => this.#stop(host.abort.reason as Error);
    if (host.abort.aborted) stop();
    else host.abort.addEventListener("abort", stop, { once: true });
    this.#host = {
      abort: this.#abort.signal,
      log: (...record) => host.log(...record),
      variable: (key) => host.variable(key),
      connection: (id) => host.connection(id),
      polled: () => host.polled(),
      limited: (...work) => host.limited(...work),
    };
  }

  get hasFired(): boolean {
    return this.#hasFired;
  }

  /** The member's next event. Requesting it acknowledges the last one. */
  async next(): Promise<TriggerYield> {
    try {
      const yielded = await this.#next();
      if (yielded.kind === "event") this.#hasFired = true;
      if (yielded.kind === "done" && !this.#hasFired) throw withoutEvent();
      return yielded;
    } catch (error) {
      throw inMember(this.name, error);
    }
  }

  async cleanup(): Promise<void> {
    this.#stop(abortReason("fired"));
    await this.#running?.cleanup();
  }

  async #next(): Promise<TriggerYield> {
    const { args, timed, wake } = this.call;
    if (this.#running !== null) return await this.#running.next();
    if (timed !== null && this.#hasFired) return { kind: "done" };
    if (wake !== null) await this.#until(wake);
    if (timed !== null) {
      return { kind: "event", payload: timed.payload ?? new Date().toISOString(), key: null };
    }
    const program = await this.#find(this.call);
    this.#host.abort.throwIfAborted();
    this.#running = await program.start(args, this.#host);
    return await this.#running.next();
  }

  /** When another member has fired, no task waits for this one any more. */
  #stop(reason: Error & { readonly kind?: TriggerAbortKind }): void {
    const isLoser = reason.kind === "fired" && !this.#hasFired;
    this.#abort.abort(isLoser ? abortReason("cancelled") : reason);
  }

  async #until(wake: NonNullable<TriggerCall["wake"]>): Promise<void> {
    const at = "at" in wake ? Date.parse(wake.at) : Date.now() + wake.afterMs;
    for (let left = at - Date.now(); left > 0; left = at - Date.now()) {
      await pause(Math.min(left, MAX_TIMER_MS), this.#host.abort);
    }
  }
}

/** Cleans up all members. @throws the error of the first cleanup that failed. */
export async function cleanUp(members: readonly Member[]): Promise<void> {
  const results = await Promise.allSettled(members.map((member) => member.cleanup()));
  const failed = results.find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}

/** The identity of a member's event; null: always a new event. */
export function identityOf(
  { source, timed }: TriggerCall,
  { key, payload }: Extract<TriggerYield, { kind: "event" }>,
): Json | null {
  if (timed !== null) return "";
  if (typeof key === "string") return key;
  return source === "builtin" ? { payload } : null;
}

export function keyOf(identity: Json): string {
  return createHash("sha256").update(JSON.stringify(identity)).digest("base64url");
}

export function withoutEvent(): Error {
  const message = "The trigger returned without an event: the wait for it would never end.";
  return Object.assign(new Error(message), { code: "TRIGGER_ENDED_WITHOUT_EVENT" });
}

/** @throws if the members do not form a joint wait. */
export function checkedMembers(members: Readonly<Record<string, TriggerCall>>): [string, TriggerCall][] {
  const entries = Object.entries(members);
  if (entries.length > 0) return entries;
  const message = "A joint wait needs `members`: triggers by name.";
  throw Object.assign(new Error(message), { code: "TRIGGER_ARGS_INVALID" });
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", settle);
      if (signal.aborted) reject(signal.reason as Error);
      else resolve();
    };
    const timer = setTimeout(settle, ms);
    if (signal.aborted) settle();
    else signal.addEventListener("abort", settle);
  });
}

function inMember(name: string, thrown: unknown): Error {
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  const code = thrown instanceof Error ? (thrown as { code?: unknown }).code : undefined;
  return Object.assign(new Error(`"${name}": ${text}`, { cause: thrown }), { code });
}
