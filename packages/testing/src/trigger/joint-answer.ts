/**
 * The outcome of a joint wait from the outcomes of its members. An answer is evaluated again after each signal and each
 * event of a running trigger: until then the first member may be unknown.
 */
import { firstEvent, membersOf } from "@tradewind/engine/model";
import type { Json } from "@tradewind/sdk";
import type { TriggerCall } from "@tradewind/sdk/manifest";
import { DagTestError } from "../errors.ts";
import type { Clock } from "../run/clock.ts";
import { abortReason } from "./live-trigger.ts";
import type { Asker, Firing } from "./scripted-triggers.ts";

/** When a trigger fires, as far as it is known; null: it does not fire yet. */
export type Answer = () => Firing | null;

export type Ask = (call: TriggerCall, asker: Asker) => Promise<Answer>;

/**
 * In real time: how long a running trigger may take before a member that fires later on the virtual clock comes first.
 */
const RUN_MS = 1_000;

/** Fires with the last member; a member that ends or fails ends the whole wait. */
export async function answerOfAll(call: TriggerCall, asker: Asker, ask: Ask): Promise<Answer> {
  const over = new AbortController();
  const host = { ...asker.host, abort: AbortSignal.any([asker.host.abort, over.signal]) };
  const ended = Promise.withResolvers<Answer>();
  const all = memberAskers(call, { ...asker, host }).map(async ([name, member, as]) => {
    const answer = await ask(member, as);
    const firing = answer();
    if (firing !== null && firing.outcome.kind !== "event") ended.resolve(() => inMember(name, firing));
    return [name, answer] as const;
  });
  const events = Promise.all(all).then((answers) => () => allOf(answers));
  return await Promise.race([
    ended.promise.then((answer) => {
      over.abort(abortReason("cancelled", "the joint wait has ended"));
      return answer;
    }),
    events,
  ]);
}

/** The joint waits for the first of several triggers whose times are not known yet. */
export class AnyAnswers {
  readonly #clock: Clock;
  readonly #undecided = new Set<() => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A signal was sent. */
  signalled(): void {
    for (const decide of this.#undecided) decide();
  }

  /** Fires with the first member that fires. A member without an entry does not fire, unless there is no other. */
  async answer(call: TriggerCall, asker: Asker, ask: Ask): Promise<Answer> {
    const clock = this.#clock;
    const members = memberAskers(call, asker);
    const answers = new Map<string, Answer>();
    const silent: DagTestError[] = [];
    const decided = Promise.withResolvers<Answer>();
    const first: Answer = () => firstOf(call, members, answers);
    let late: NodeJS.Timeout | undefined;
    const decide = (): void => {
      const firing = first();
      if (answers.size === members.length) decided.resolve(first);
      else if (firing === null) return;
      else if (!clock.isVirtual || firing.at <= clock.now()) decided.resolve(first);
      else late ??= setTimeout(() => decided.resolve(first), RUN_MS);
    };
    for (const [name, member, as] of members) {
      void ask(member, as)
        .catch((error: unknown) => {
          if (!(error instanceof DagTestError) || error.code !== "TW_TEST_NO_EVENT") throw error;
          if (silent.push(error) === members.length) throw error;
          return () => null;
        })
        .then((answer) => {
          answers.set(name, answer);
          decide();
          asker.changed();
        })
        .catch(decided.reject);
    }
    this.#undecided.add(decide);
    try {
      return await decided.promise;
    } finally {
      clearTimeout(late);
      this.#undecided.delete(decide);
    }
  }
}

function memberAskers(call: TriggerCall, asker: Asker): [string, TriggerCall, Asker][] {
  return Object.entries(membersOf(call)).map(([name, member]) => {
    const step = asker.step === null ? name : `${asker.step}/${name}`;
    return [name, member, { ...asker, step }];
  });
}

function allOf(answers: readonly (readonly [string, Answer])[]): Firing | null {
  const fired = answers.map(([name, answer]) => [name, answer()] as const);
  const ending = fired.find(([, firing]) => firing !== null && firing.outcome.kind !== "event");
  if (ending !== undefined) return inMember(ending[0], ending[1]!);
  if (fired.some(([, firing]) => firing === null)) return null;
  const payload = Object.fromEntries(fired.map(([name, firing]) => [name, payloadOf(firing!)]));
  const at = Math.max(...fired.map(([, firing]) => firing!.at));
  return { at, outcome: { kind: "event", payload, key: null } };
}

/** At the same moment, the first in the order of the call wins. */
function firstOf(
  call: TriggerCall,
  members: readonly (readonly [string, TriggerCall, Asker])[],
  answers: ReadonlyMap<string, Answer>,
): Firing | null {
  let first: readonly [string, Firing] | null = null;
  for (const [name] of members) {
    const firing = answers.get(name)?.() ?? null;
    if (firing !== null && (first === null || firing.at < first[1].at)) first = [name, firing];
  }
  if (first === null) return null;
  const [name, firing] = first;
  if (firing.outcome.kind !== "event") return inMember(name, firing);
  const payload = firstEvent(call.args, name, firing.outcome.payload);
  return { at: firing.at, outcome: { kind: "event", payload, key: null } };
}

function payloadOf({ outcome }: Firing): Json {
  return outcome.kind === "event" ? outcome.payload : null;
}

function inMember(name: string, { at, outcome }: Firing): Firing {
  if (outcome.kind !== "failed") return { at, outcome };
  const error = { ...outcome.error, message: `"${name}": ${outcome.error.message}` };
  return { at, outcome: { kind: "failed", error } };
}
