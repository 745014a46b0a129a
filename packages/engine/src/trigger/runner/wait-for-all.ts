/**
 * `tradewind.all`: fires once, with the first event of each member by name. The members' events are acknowledged
 * together with the joint event.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { RunningTrigger, TriggerProgram, TriggerYield } from "@tradewind/sdk/program";
import type { BuiltinHost } from "../../builtin/builtin-kind.ts";
import { ALL_KIND, membersOf } from "../../model/signal/joint-wait.ts";
import { checkedMembers, cleanUp, type FindMember, identityOf, keyOf, Member } from "./joint-wait.ts";

/** How long members may take to acknowledge; a member with more events to come would never finish. */
const FAREWELL_MS = 1_000;

export function waitForAll(find: FindMember): TriggerProgram {
  return {
    protocol: 1,
    id: ALL_KIND,
    start: async (args, host) => new WaitForAll(args, find, host),
  };
}

class WaitForAll implements RunningTrigger {
  readonly #members: readonly Member[];
  readonly #host: BuiltinHost;
  #hasFired = false;

  constructor(args: Json, find: FindMember, host: BuiltinHost) {
    const members = checkedMembers(membersOf({ kind: ALL_KIND, args }));
    this.#members = members.map((member) => new Member(member, find, host));
    this.#host = host;
    // After a crash of an earlier process, the members that it reported are void.
    this.#host.members?.([]);
  }

  async next(): Promise<TriggerYield> {
    if (this.#hasFired) {
      await this.#acknowledge();
      return { kind: "done" };
    }
    const events: Record<string, Json> = {};
    const identities = new Map<string, Json>();
    // The alternative result: a failure, or a member that ends the task.
    const ended = Promise.withResolvers<TriggerYield>();
    const all = this.#members.map(async (member) => {
      const first = await member.next();
      if (first.kind !== "event") return ended.resolve(first);
      events[member.name] = first.payload;
      this.#host.members?.(Object.keys(events));
      const identity = identityOf(member.call, first);
      if (identity !== null) identities.set(member.name, identity);
    });
    const fired = Promise.all(all).then(() => null);
    const outcome = await Promise.race([fired, ended.promise]);
    if (outcome !== null) return outcome;
    // A member's ending may settle in the same turn as the last event.
    if (Object.keys(events).length < this.#members.length) return await ended.promise;
    this.#hasFired = true;
    const payload = Object.fromEntries(this.#members.map(({ name }) => [name, events[name] as Json]));
    return { kind: "event", payload, key: this.#key(identities) };
  }

  async cleanup(): Promise<void> {
    await cleanUp(this.#members);
  }

  #key(identities: ReadonlyMap<string, Json>): string | null {
    if (identities.size < this.#members.length) return null;
    return keyOf(this.#members.map(({ name }) => identities.get(name) ?? null));
  }

  /** Runs the code after each member's `yield`: the event is stored. */
  async #acknowledge(): Promise<void> {
    const farewells = this.#members.map((member) => member.next());
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, FAREWELL_MS);
    await Promise.race([Promise.allSettled(farewells), late.promise]);
    clearTimeout(timer);
  }
}
