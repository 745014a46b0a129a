/**
 * Several triggers waited for together: fires once, with the first event of each by name. A member that fails fails
 * the whole, one that ends the task ends it. The members' events are acknowledged when the joint one is.
 *
 * What the joint event is known by is made of what its members' are. Built-in triggers look at how things are: where
 * they give no key, the same sight is the same event. What an author's own trigger yields without a key is new each
 * time, and so is the whole. That a time has passed tells no events apart.
 */
import { createHash } from "node:crypto";
import type { Json, TriggerCall } from "@tradewind/sdk/manifest";
import type { RunningTrigger, TriggerHost, TriggerProgram, TriggerYield } from "@tradewind/sdk/program";

/** How long members may take to acknowledge; one with more events to come would never be done. */
const FAREWELL_MS = 1_000;
const MAX_TIMER_MS = 2 ** 31 - 1;

export function joint(find: (member: TriggerCall) => Promise<TriggerProgram>): TriggerProgram {
  return {
    protocol: 1,
    id: "tradewind.all",
    start: async (args, host) => new JointWait(membersOf(args), find, host),
  };
}

class JointWait implements RunningTrigger {
  readonly #members: readonly (readonly [string, TriggerCall])[];
  readonly #find: (member: TriggerCall) => Promise<TriggerProgram>;
  readonly #host: TriggerHost;
  readonly #over = new AbortController();
  readonly #running: RunningTrigger[] = [];
  #hasFired = false;

  constructor(
    members: Readonly<Record<string, TriggerCall>>,
    find: (member: TriggerCall) => Promise<TriggerProgram>,
    host: TriggerHost,
  ) {
    this.#members = Object.entries(members);
    this.#find = find;
    this.#host = {
      abort: AbortSignal.any([host.abort, this.#over.signal]),
      log: (...record) => host.log(...record),
      variable: (key) => host.variable(key),
      connection: (id) => host.connection(id),
      polled: () => host.polled(),
      limited: (...work) => host.limited(...work),
    };
  }

  async next(): Promise<TriggerYield> {
    if (this.#hasFired) {
      await this.#acknowledge();
      return { kind: "done" };
    }
    const events: Record<string, Json> = {};
    const identities = new Map<string, Json>();
    // What settles first otherwise: a failure, or a member that ends the task.
    const ended = Promise.withResolvers<TriggerYield>();
    const all = this.#members.map(async ([name, call]) => {
      const first = await this.#first(name, call);
      if (first.kind !== "event") return ended.resolve(first);
      events[name] = first.payload;
      const identity = call.timed === null ? identityOf(call, first) : "";
      if (identity !== null) identities.set(name, identity);
    });
    const fired = Promise.all(all).then(() => null);
    const outcome = await Promise.race([fired, ended.promise]);
    if (outcome !== null) return outcome;
    // A member's ending may settle in the same turn as the last event.
    if (Object.keys(events).length < this.#members.length) return await ended.promise;
    this.#hasFired = true;
    const payload = Object.fromEntries(this.#members.map(([name]) => [name, events[name] as Json]));
    return { kind: "event", payload, key: this.#key(identities) };
  }

  #key(identities: ReadonlyMap<string, Json>): string | null {
    if (identities.size < this.#members.length) return null;
    const known = this.#members.map(([name]) => identities.get(name) ?? null);
    return createHash("sha256").update(JSON.stringify(known)).digest("base64url");
  }

  async cleanup(): Promise<void> {
    this.#over.abort(new DOMException("the joint wait is over", "AbortError"));
    const results = await Promise.allSettled(this.#running.map((running) => running.cleanup()));
    const failed = results.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }

  async #first(name: string, call: TriggerCall): Promise<TriggerYield> {
    try {
      if (call.wake !== null) await this.#until(call.wake);
      if (call.timed !== null) {
        return { kind: "event", payload: call.timed.payload ?? new Date().toISOString(), key: null };
      }
      const program = await this.#find(call);
      this.#host.abort.throwIfAborted();
      const running = await program.start(call.args, this.#host);
      this.#running.push(running);
      const first = await running.next();
      if (first.kind === "done") throw withoutEvent();
      return first;
    } catch (error) {
      throw inMember(name, error);
    }
  }

  /** Lets code after each member's `yield` run: the event is stored. */
  async #acknowledge(): Promise<void> {
    const farewells = this.#running.map((running) => running.next());
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, FAREWELL_MS);
    await Promise.race([Promise.allSettled(farewells), late.promise]);
    clearTimeout(timer);
  }

  async #until(wake: NonNullable<TriggerCall["wake"]>): Promise<void> {
    const at = "at" in wake ? Date.parse(wake.at) : Date.now() + wake.afterMs;
    for (let left = at - Date.now(); left > 0; left = at - Date.now()) {
      await pause(Math.min(left, MAX_TIMER_MS), this.#host.abort);
    }
  }
}

function identityOf(
  { source }: TriggerCall,
  { key, payload }: Extract<TriggerYield, { kind: "event" }>,
): Json | null {
  if (typeof key === "string") return key;
  return source === "builtin" ? { payload } : null;
}

export function withoutEvent(): Error {
  const message = "The trigger returned without an event: whoever waits for it would wait for ever.";
  return Object.assign(new Error(message), { code: "TRIGGER_ENDED_WITHOUT_EVENT" });
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

function membersOf(args: Json): Readonly<Record<string, TriggerCall>> {
  const members = (args as { readonly members?: unknown } | null)?.members;
  const isRecord = typeof members === "object" && members !== null && !Array.isArray(members);
  if (!isRecord || Object.keys(members).length === 0) {
    throw Object.assign(new Error("A joint wait needs `members`: triggers by name."), {
      code: "TRIGGER_ARGS_INVALID",
    });
  }
  return members as Readonly<Record<string, TriggerCall>>;
}
