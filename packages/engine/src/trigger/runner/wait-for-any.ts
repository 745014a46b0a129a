/**
 * `tradewind.any`: fires with the event of any member, and continues with the others and with the next event of that
 * member: as a schedule it creates a run for each. For a task the first event ends the wait: the triggerer stops it.
 *
 * An event is acknowledged only to the member that yielded it: the sources of the other members deliver their events
 * again.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { RunningTrigger, TriggerHost, TriggerProgram, TriggerYield } from "@tradewind/sdk/program";
import { ANY_KIND, firstEvent, membersOf } from "../../model/signal/joint-wait.ts";
import { checkedMembers, cleanUp, type FindMember, identityOf, keyOf, Member } from "./joint-wait.ts";

export function waitForAny(find: FindMember): TriggerProgram {
  return {
    protocol: 1,
    id: ANY_KIND,
    start: async (args, host) => new WaitForAny(args, find, host),
  };
}

interface Yielded {
  readonly member: Member;
  readonly yielded: TriggerYield;
}

class WaitForAny implements RunningTrigger {
  readonly #args: Json;
  readonly #members: readonly Member[];
  readonly #pending = new Map<Member, Promise<Yielded>>();
  /** Members whose next event is to be requested. */
  #idle: readonly Member[];

  constructor(args: Json, find: FindMember, host: TriggerHost) {
    this.#args = args;
    const members = checkedMembers(membersOf({ kind: ANY_KIND, args }));
    this.#members = members.map((member) => new Member(member, find, host));
    this.#idle = this.#members;
  }

  async next(): Promise<TriggerYield> {
    for (const member of this.#idle) this.#request(member);
    this.#idle = [];
    while (this.#pending.size > 0) {
      const { member, yielded } = await Promise.race(this.#pending.values());
      this.#pending.delete(member);
      if (yielded.kind === "done") continue;
      this.#idle = [member];
      if (yielded.kind === "ending") return yielded;
      const identity = identityOf(member.call, yielded);
      const payload = firstEvent(this.#args, member.name, yielded.payload);
      return { kind: "event", payload, key: identity === null ? null : keyOf([member.name, identity]) };
    }
    return { kind: "done" };
  }

  async cleanup(): Promise<void> {
    await cleanUp(this.#members);
  }

  #request(member: Member): void {
    const next = member.next().then((yielded) => ({ member, yielded }));
    // A failure that comes second has no effect: the first event counts.
    next.catch(() => {});
    this.#pending.set(member, next);
  }
}
