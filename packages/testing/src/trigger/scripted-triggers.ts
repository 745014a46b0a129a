/**
 * Finds the outcome of a trigger. Entries of the test come first; time passes on the run's clock; apart from custom
 * classes that the test asks to run, nothing accesses external systems.
 */

import type { TriggerOutcome } from "@tradewind/engine/model";
import { ALL_KIND, ANY_KIND, type Instance } from "@tradewind/engine/model";
import type { Json } from "@tradewind/sdk";
import { APPROVAL_KIND } from "@tradewind/sdk/approval-request";
import type { DateTimeArgs } from "@tradewind/sdk/builtin-triggers";
import type { TriggerCall } from "@tradewind/sdk/manifest";
import type { TriggerHost, TriggerProgram } from "@tradewind/sdk/program";
import { DagTestError } from "../errors.ts";
import type { RunOptions } from "../options.ts";
import type { Clock } from "../run/clock.ts";
import { type InnerRuns, RUN_KIND } from "../run/inner-runs.ts";
import type { SignalLog } from "../signal/signal-log.ts";
import { type Approvals, answerOf } from "./given-answers.ts";
import { type Answer, AnyAnswers, answerOfAll } from "./joint-answer.ts";
import { LiveTriggers } from "./live-trigger.ts";
import { misspelt } from "./trigger-keys.ts";
import { failedWith, programIn, type Scripted, scripted, type Triggers } from "./trigger-script.ts";

/** The wait that needs the outcome. */
export interface Asker {
  readonly instance: Instance;
  /** The name or method of the wait; in a joint wait followed by that of the member. */
  readonly step: string | null;
  /** When the wait began; for a poll of a sensor, when its try began. */
  readonly since: number;
  /** For a running trigger; its abort is the end of the wait. */
  readonly host: TriggerHost;
  /** Called when the answer may have changed, also before it is returned. */
  readonly changed: () => void;
}

/** The outcome of a trigger, and its time. */
export interface Firing {
  readonly at: number;
  readonly outcome: TriggerOutcome;
}

interface Entry {
  readonly key: string;
  readonly script: unknown;
}

const SIGNAL_KIND = "tradewind.signal";
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export class ScriptedTriggers {
  readonly #triggers: Triggers;
  readonly #clock: Clock;
  readonly #signals: SignalLog;
  readonly #inner: InnerRuns;
  readonly #live = new LiveTriggers();
  readonly #anyAnswers: AnyAnswers;
  readonly #approvals: Approvals;

  constructor(
    { approvals = {}, triggers = {} }: Pick<RunOptions, "approvals" | "triggers">,
    clock: Clock,
    world: { readonly signals: SignalLog; readonly inner: InnerRuns },
  ) {
    this.#triggers = triggers;
    this.#approvals = approvals;
    this.#clock = clock;
    this.#signals = world.signals;
    this.#inner = world.inner;
    this.#anyAnswers = new AnyAnswers(clock);
  }

  /** A signal was sent: earlier answers may have changed. */
  signalled(): void {
    this.#anyAnswers.signalled();
  }

  /** Returns when the trigger fires. Rejects if the test has no entry for it. */
  async call(call: TriggerCall, asker: Asker): Promise<Answer> {
    const ask = (member: TriggerCall, as: Asker) => this.call(member, as);
    const isScripted = this.#find(call, asker) !== null;
    if (!isScripted && call.timed === null) {
      if (call.kind === SIGNAL_KIND) return this.#firstSignal(call);
      if (call.kind === ALL_KIND) return await answerOfAll(call, asker, ask);
      if (call.kind === ANY_KIND) return await this.#anyAnswers.answer(call, asker, ask);
    }
    const firing = isScripted ? await this.#firing(call, asker) : await this.#unscripted(call, asker);
    return () => firing;
  }

  /** An approval is answered by the test or, if that is earlier, by its timeout. */
  async #unscripted(call: TriggerCall, asker: Asker): Promise<Firing | null> {
    if (call.kind !== APPROVAL_KIND) return this.#firing(call, asker);
    const answer = answerOf(this.#approvals, call, { ...asker, now: new Date(this.#clock.now()) });
    if (answer === undefined) return this.#firing(call, asker);
    const timeout = call.timed === null ? null : await this.#firing(call, asker);
    return answer !== null && (timeout === null || answer.at < timeout.at) ? answer : timeout;
  }

  /** Null: it does not fire. */
  async #firing(call: TriggerCall, asker: Asker): Promise<Firing | null> {
    const entry = this.#find(call, asker);
    if (entry !== null) {
      const program = programIn(entry.script);
      if (program !== null) return this.#run(program, call, asker);
      const answer = await this.#scripted(entry, call, asker);
      if (answer === null) return null;
      if (call.kind === RUN_KIND) this.#inner.setOutcome(call.args, answer.outcome);
      // An entry overrides the moment of a time trigger.
      const from = call.timed === null ? earliest(call, asker) : asker.since;
      return { at: Math.max(from, asker.since + answer.delayMs), outcome: answer.outcome };
    }
    if (call.timed !== null) {
      const at = earliest(call, asker);
      // Without an entry, or for a duration on this clock, the moment itself is the event.
      const payload = (lengthOf(call) === null && call.timed.payload) || new Date(at).toISOString();
      return { at, outcome: { kind: "event", payload, key: null } };
    }
    const firing = call.kind === RUN_KIND ? await this.#inner.firing(call.args, asker.since) : null;
    if (firing !== null) return firing;
    throw noEvent(call, asker, this.#triggers);
  }

  /** Fires with the first matching signal, when it was sent. */
  #firstSignal(call: TriggerCall): Answer {
    let heard: Firing | null = null;
    return () => {
      const event = heard === null ? this.#signals.first(call.args) : null;
      if (event !== null)
        heard = {
          at: this.#clock.now(),
          outcome: { kind: "event", payload: event as unknown as Json, key: null },
        };
      return heard;
    };
  }

  /** One poll of a sensor: the event, or undefined for "not yet". */
  async check(call: TriggerCall, asker: Asker): Promise<Json | undefined> {
    if (call.source === "bundle") {
      const message = `"${call.kind}" cannot be polled here: only a triggerer can wait for it. Use the deferred mode.`;
      throw Object.assign(new Error(message), { code: "TRIGGER_KIND_UNKNOWN" });
    }
    const now = this.#clock.now();
    const entry = this.#find(call, asker);
    if (entry === null && call.timed !== null) return this.#checkMoment(call, now);
    if (entry === null) throw noEvent(call, asker, this.#triggers);
    const answer = await this.#scripted(entry, call, asker);
    if (answer === null || asker.since + answer.delayMs > now) return undefined;
    const { outcome } = answer;
    if (outcome.kind === "event") return outcome.payload;
    if (outcome.kind === "failed") throw Object.assign(new Error(outcome.error.message), outcome.error);
    throw new DagTestError(
      "TW_TEST_BAD_OPTION",
      `triggers: "${entry.key}" ends a waiting task, but task "${asker.instance.node.id}" polls`,
    );
  }

  /** Resolves when all running triggers have cleaned up. */
  close(): Promise<void> {
    return this.#live.close();
  }

  #find({ kind }: TriggerCall, { instance, step }: Pick<Asker, "instance" | "step">): Entry | null {
    const taskId = instance.node.id;
    const keys = [...(step === null ? [] : [`${taskId}/${step}`]), taskId, kind];
    const key = keys.find((each) => Object.hasOwn(this.#triggers, each));
    return key === undefined ? null : { key, script: this.#triggers[key] };
  }

  async #scripted({ key, script }: Entry, { args }: TriggerCall, asker: Asker): Promise<Scripted> {
    if (typeof script !== "function") return scripted(key, script);
    const { instance, step } = asker;
    const { node, tryNumber } = instance;
    const wait = { taskId: node.id, tryNumber, step, now: new Date(this.#clock.now()) };
    let value: unknown;
    try {
      value = await (script as (args: Json, wait: unknown) => unknown)(structuredClone(args), wait);
    } catch (error) {
      return { delayMs: 0, outcome: failedWith(error) };
    }
    return scripted(key, value);
  }

  async #run(program: TriggerProgram, call: TriggerCall, asker: Asker): Promise<Firing | null> {
    const { host } = asker;
    const at = earliest(call, asker);
    // On a virtual clock it runs at once: external systems do not share that time.
    if (!this.#clock.isVirtual) await until(at, this.#clock, host.abort);
    const outcome = await this.#live.run(program, call, host);
    return outcome && { at: Math.max(at, this.#clock.now()), outcome };
  }

  #checkMoment(call: TriggerCall, now: number): Json | undefined {
    // A single check does not know when a duration began: see the trigger's own check in the engine.
    const at = earliest(call, { since: now });
    return at > now ? undefined : (call.timed?.payload ?? new Date(now).toISOString());
  }
}

/** A trigger cannot fire before its `wake`. */
function earliest(call: TriggerCall, { since }: Pick<Asker, "since">): number {
  const { wake } = call;
  if (wake === null) return since;
  const length = lengthOf(call);
  if (length !== null) return since + length;
  return "at" in wake ? Math.max(since, Date.parse(wake.at)) : since + wake.afterMs;
}

/** The duration of a member of a joint wait; its moment uses real time. */
function lengthOf({ args, kind }: TriggerCall): number | null {
  return kind === "tradewind.datetime" ? ((args as unknown as DateTimeArgs).deltaMs ?? null) : null;
}

function noEvent({ kind, source }: TriggerCall, { instance, step }: Asker, given: Triggers): DagTestError {
  const taskId = instance.node.id;
  const where = step === null ? `task "${taskId}"` : `task "${taskId}" (${step})`;
  const isOwn = source === "bundle";
  const hint = misspelt(given, [...(step === null ? [] : [`${taskId}/${step}`]), taskId, kind]);
  const run = isOwn ? ", or its class, which is then run" : "";
  // `dags test` runs the top-level classes of a file: this one is not among them, so no triggerer would find it.
  const place = isOwn ? " (its class must be at the top level of its module, not inside a function)" : "";
  return new DagTestError(
    "TW_TEST_NO_EVENT",
    `${where} waits for "${kind}", which has no entry in \`triggers\`${place}${hint}`,
    `give its event${run}: runDag(dag, { triggers: { "${kind}": … } })`,
  );
}

async function until(moment: number, clock: Clock, abort: AbortSignal): Promise<void> {
  while (!abort.aborted && clock.now() < moment) {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.min(moment - clock.now(), LONGEST_TIMER_MS));
      const wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
      abort.addEventListener("abort", wakeUp, { once: true });
    });
  }
}
