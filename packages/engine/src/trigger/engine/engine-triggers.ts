/**
 * Triggers that wait for something in this database: another run, another task, a webhook call, a signal. They do not
 * run: the engine polls all triggers of a kind with one statement after an event that may concern them.
 * Level-triggered: a condition that already holds fires at the first poll.
 *
 * A joint wait may combine such members with others. Then the others run as a joint wait of their own, and its event is
 * merged with ours here. If the process dies, the triggerer that takes the trigger over polls everything again.
 */
import type {
  DagRunArgs,
  ExternalTaskArgs,
  ExternalTaskState,
  SignalArgs,
  WebhookArgs,
} from "@tradewind/sdk/builtin-triggers";
import type { Json, TriggerCall } from "@tradewind/sdk/manifest";
import { badArguments } from "../../builtin/trigger-error.ts";
import type { TriggerOutcome } from "../../model/index.ts";
import { ANY_KIND, isJointKind, JointWaitState, type MemberEvent, membersOf } from "../../model/index.ts";
import {
  isEngineKind,
  RUN_KIND,
  SIGNAL_KIND,
  TASK_KIND,
  WEBHOOK_KIND,
} from "../../model/trigger/engine-kinds.ts";
import { isTriggerCall } from "../../model/trigger/trigger-call.ts";
import type { Database } from "../../store/database/database.ts";
import {
  findCalls,
  findNewCalls,
  findTasks,
  type Wait,
  webhookRunId,
} from "../../store/trigger/engine-conditions.ts";
import type { ClaimedTrigger } from "../../store/trigger/trigger-claim.ts";
import { isForEnd, RunStateReads } from "../triggerer/run-state-reads.ts";
import { engineArgs } from "./engine-args.ts";
import { type SignalRead, SignalWaits } from "./engine-signals.ts";
import { JointProgress } from "./joint-progress.ts";

/** Calls of one webhook that become runs in one poll. */
const CALLS_AT_ONCE = 100;

/** The result of a poll. */
export type Finding =
  | { readonly kind: "outcome"; readonly id: number; readonly outcome: TriggerOutcome }
  /** For a schedule: an event of which the source needs no acknowledgement, and which is known by its run's id. */
  | { readonly kind: "run"; readonly id: number; readonly runId: string; readonly payload: Json }
  /** What it waits for does not exist; said once. */
  | { readonly kind: "missing"; readonly id: number; readonly what: string }
  /** Every call of its webhook so far has its run. */
  | { readonly kind: "complete"; readonly id: number };

/** One condition to wait for: a trigger, or a member of one. */
interface Condition {
  readonly trigger: ClaimedTrigger;
  /** Members only: the enclosing joint waits, the innermost first, and the member's name in each. */
  readonly path: readonly { readonly state: JointWaitState; readonly name: string }[];
  readonly kind: string;
  readonly args: Json;
  wasMissing: boolean;
}

/** A joint wait with observed members. */
interface Joint {
  readonly state: JointWaitState;
  readonly isAny: boolean;
  /** Its event, once there is one. */
  whole: TriggerOutcome | null;
  /** `any` only: the event is from an observed member. */
  isOurs: boolean;
}

export class EngineTriggers {
  readonly #database: Database;
  readonly #conditions = new Map<number, Condition>();
  /** Conditions by trigger. */
  readonly #numbers = new Map<number, number[]>();
  readonly #joint = new Map<number, Joint>();
  readonly progress = new JointProgress();
  readonly #signals: SignalWaits;
  readonly #runs: RunStateReads;
  #lastNumber = 0;
  /** Number of conditions for which `isStep` holds. */
  #steps = 0;

  constructor(database: Database) {
    this.#database = database;
    this.#signals = new SignalWaits(database);
    this.#runs = new RunStateReads(database);
  }

  get size(): number {
    return this.#numbers.size;
  }

  /** True if a trigger waits for events that are published only on request: the end of a task, the start of a run. */
  get waitsForSteps(): boolean {
    return this.#steps > 0;
  }

  get waitsForSignals(): boolean {
    return this.#signals.size > 0;
  }

  /** True if a trigger waits for the engine's own signals. */
  get waitsForStates(): boolean {
    return this.#signals.wantsStates;
  }

  /**
   * Adds the observed part of a trigger. Returns the arguments, possibly null, for the part that has to run;
   * undefined if nothing has to run.
   *
   * @throws TriggerRefusal if the arguments are invalid; then nothing was added.
   */
  add(trigger: ClaimedTrigger): Json | undefined {
    const { id, kind } = trigger;
    if (isEngineKind(kind)) {
      const args = engineArgs(kind, trigger.args);
      this.#add({ trigger, path: [], kind, args, wasMissing: false });
      return undefined;
    }
    if (!isJointKind(kind)) return trigger.args;
    this.progress.add(trigger);
    const members = Object.entries(membersOf(trigger));
    const ours = members.filter(([, call]) => leavesOf(kind, call).every(isEngineKind));
    if (ours.length === 0) return trigger.args;
    const rest = members.filter(([, call]) => !leavesOf(kind, call).every(isEngineKind));
    const state = new JointWaitState(trigger);
    // Validate all members before adding the first.
    const conditions = ours.flatMap(([name, call]) => conditionsOf(trigger, call, [{ state, name }]));
    this.#joint.set(id, { state, isAny: kind === ANY_KIND, whole: null, isOurs: false });
    for (const condition of conditions) this.#add(condition);
    if (rest.length === 0) return undefined;
    return { ...(trigger.args as object), members: Object.fromEntries(rest) } as unknown as Json;
  }

  remove(id: number): void {
    for (const number of this.#numbers.get(id) ?? []) this.#delete(number);
    this.#numbers.delete(id);
    this.#joint.delete(id);
    this.progress.remove(id);
  }

  /** Merges an outcome of the running part with ours. Null: members are still missing, or the event came second. */
  merge(id: number, outcome: TriggerOutcome): TriggerOutcome | null {
    const joint = this.#joint.get(id);
    if (joint === undefined || outcome.kind !== "event" || joint.whole === outcome) return outcome;
    if (joint.whole !== null) return null;
    if (joint.isAny) joint.whole = outcome;
    else joint.whole = whole(joint.state.recordSome(outcome.payload as Record<string, Json>, outcome.key));
    return joint.whole;
  }

  /** True if the stored event is from the running part: a second event of `any` is not stored. */
  wantsAck(id: number): boolean {
    return this.#joint.get(id)?.isOurs !== true;
  }

  /** Polls everything but signals. No condition is removed before everything is read: a poll that fails loses no finding. */
  async read(): Promise<Finding[]> {
    const waits = [...this.#conditions].map(([id, condition]) => ({ id, condition }));
    const of = (kind: string) => waits.filter(({ condition }) => condition.kind === kind);
    const webhooks = of(WEBHOOK_KIND);
    // A member of a joint schedule waits for one call, as a task does.
    const isSchedule = ({ condition: { path, trigger } }: Waiting) =>
      trigger.dag_id !== null && path.length === 0;
    const looks = [
      await this.#readRuns(of(RUN_KIND)),
      await this.#readTasks(of(TASK_KIND)),
      await this.#readCalls(webhooks.filter((waiting) => !isSchedule(waiting))),
      await this.#findCalls(webhooks.filter(isSchedule)),
    ];
    return looks.flatMap((findings) => findings());
  }

  /** Polls signals until `deadline` by `performance.now()`. */
  async readSignals(deadline: number): Promise<SignalRead & { readonly findings: Finding[] }> {
    const look = await this.#signals.read(deadline);
    const findings = this.#signals.drain().flatMap(([number, event]) => {
      const condition = this.#conditions.get(number);
      if (condition === undefined) return [];
      const payload = event as unknown as Json;
      return this.#happened(number, condition, {
        kind: "event",
        payload,
        key: `${event.version}`,
        signals: [event.version],
      });
    });
    return { ...look, findings };
  }

  #add(condition: Condition): void {
    const number = ++this.#lastNumber;
    this.#conditions.set(number, condition);
    if (isStep(condition)) this.#steps++;
    const { args, kind, trigger } = condition;
    if (kind === SIGNAL_KIND) this.#signals.add(number, args as unknown as SignalArgs, trigger.created_at);
    const numbers = this.#numbers.get(condition.trigger.id);
    if (numbers) numbers.push(number);
    else this.#numbers.set(condition.trigger.id, [number]);
  }

  #delete(number: number): void {
    const condition = this.#conditions.get(number);
    if (condition?.kind === SIGNAL_KIND)
      this.#signals.delete(number, condition.args as unknown as SignalArgs);
    if (condition && isStep(condition)) this.#steps--;
    this.#conditions.delete(number);
  }

  async #readRuns(waits: readonly Waiting[]): Promise<() => Finding[]> {
    const found = await this.#runs.find(waitsFor<DagRunArgs>(waits));
    return () =>
      waits.flatMap(({ id, condition }) => {
        const run = found.get(id);
        const args = condition.args as unknown as DagRunArgs;
        if (run === undefined) return [];
        if (run === null && args.missing === "fail") return this.#happened(id, condition, runGone(args));
        if (run === null) return this.#missing(condition, `run ${runName(args)}`);
        if (!args.states.includes(run.state)) return [];
        const logicalDate = run.logical_date?.toISOString() ?? null;
        const payload = { dagId: args.dagId, runId: run.run_id, logicalDate, state: run.state };
        return this.#happened(id, condition, { kind: "event", payload, key: `${run.run_id} ${run.state}` });
      });
  }

  async #readTasks(waits: readonly Waiting[]): Promise<() => Finding[]> {
    const found = await findTasks(this.#database, waitsFor<ExternalTaskArgs>(waits));
    return () =>
      waits.flatMap(({ id, condition }) => {
        const args = condition.args as unknown as ExternalTaskArgs;
        const instances = found.get(id);
        if (instances === undefined)
          return this.#missing(condition, `task "${args.taskId}" in run ${runName(args)}`);
        const outcome = taskOutcome(args, instances);
        return outcome === null ? [] : this.#happened(id, condition, outcome);
      });
  }

  async #readCalls(waits: readonly Waiting[]): Promise<() => Finding[]> {
    const found = await findCalls(
      this.#database,
      waits.map(({ id, condition }) => {
        const { name, after } = condition.args as unknown as WebhookArgs;
        // Absent for a run that has not begun. Other waits are for calls since their run began (trigger-call.ts).
        const since = after ?? condition.trigger.created_at.toISOString();
        return { id, args: { name, after: since, trigger: condition.trigger.id } };
      }),
    );
    return () =>
      waits.flatMap(({ id, condition }) => {
        const call = found.get(id);
        if (call === undefined) return [];
        return this.#happened(id, condition, {
          kind: "event",
          payload: call.value as unknown as Json,
          key: `${call.signal_id}`,
          calls: { [(condition.args as unknown as WebhookArgs).name]: call.signal_id },
        });
      });
  }

  /** As a schedule: every call becomes a run. */
  async #findCalls(waits: readonly Waiting[]): Promise<() => Finding[]> {
    const asked = waits.map(({ condition }) => ({
      id: condition.trigger.id,
      args: condition.args as unknown as WebhookArgs,
    }));
    const calls = await findNewCalls(this.#database, asked, CALLS_AT_ONCE);
    const busy = new Set(calls.map(({ id }) => id));
    return () => [
      ...calls.map(({ id, signal_id, value }) => ({
        kind: "run" as const,
        id,
        runId: webhookRunId(signal_id),
        payload: value as unknown as Json,
      })),
      ...asked.filter(({ id }) => !busy.has(id)).map(({ id }) => ({ kind: "complete" as const, id })),
    ];
  }

  #happened(number: number, condition: Condition, outcome: TriggerOutcome): Finding[] {
    const { trigger, path } = condition;
    // Ended for this job: the outcome is kept until it is stored, and needs no further polls.
    this.#delete(number);
    if (path.length === 0 || outcome.kind !== "event") return [{ kind: "outcome", id: trigger.id, outcome }];
    const joint = this.#joint.get(trigger.id);
    let event: MemberEvent | null = outcome;
    for (const [at, { state, name }] of path.entries()) {
      if (event && at === path.length - 1) this.progress.observed(trigger.id, name);
      event = event && state.record(name, event);
    }
    if (joint === undefined || joint.whole !== null || event === null) return [];
    joint.whole = whole(event);
    joint.isOurs = joint.isAny;
    return [{ kind: "outcome", id: trigger.id, outcome: joint.whole as TriggerOutcome }];
  }

  #missing(condition: Condition, what: string): Finding[] {
    if (condition.wasMissing) return [];
    condition.wasMissing = true;
    return [{ kind: "missing", id: condition.trigger.id, what }];
  }
}

function whole(event: MemberEvent | null): TriggerOutcome | null {
  return event === null ? null : { kind: "event", ...event };
}

/** The kinds of a member's triggers: its own kind, or the kinds inside a joint wait. */
function leavesOf(kind: string, call: TriggerCall): string[] {
  if (!isTriggerCall(call)) throw badArguments(kind, "members: not all are triggers");
  if (!isJointKind(call.kind)) return [call.kind];
  const leaves = Object.values(membersOf(call)).flatMap((member) => leavesOf(kind, member));
  const observed = leaves.filter(isEngineKind).length;
  if (leaves.length > 0 && (observed === 0 || observed === leaves.length)) return leaves;
  const what = "a joint wait inside another one has either members that the engine observes, or others";
  throw badArguments(kind, `members: ${what}`);
}

function conditionsOf(trigger: ClaimedTrigger, call: TriggerCall, path: Condition["path"]): Condition[] {
  const { kind } = call;
  if (!isJointKind(kind))
    return [{ trigger, path, kind, args: engineArgs(kind, call.args), wasMissing: false }];
  const state = new JointWaitState(call);
  return Object.entries(membersOf(call)).flatMap(([name, member]) =>
    conditionsOf(trigger, member, [{ state, name }, ...path]),
  );
}

interface Waiting {
  readonly id: number;
  readonly condition: Condition;
}

function isStep({ args, kind }: Condition): boolean {
  if (kind === TASK_KIND) return true;
  return kind === RUN_KIND && !isForEnd(args as unknown as DagRunArgs);
}

/** Polls one call of such a kind once, for tasks that poll; `since` is the time the wait began. */
export async function checkEngineTrigger(
  database: Database,
  call: Pick<TriggerCall, "kind" | "args">,
  since: Date,
): Promise<Json | undefined> {
  const triggers = new EngineTriggers(database);
  const { kind, args } = call;
  triggers.add({ id: 0, kind, args, bundle_hash: null, dag_id: null, replicas: 1, created_at: since });
  const { findings } = await triggers.readSignals(Number.POSITIVE_INFINITY);
  for (const finding of [...findings, ...(await triggers.read())]) {
    if (finding.kind !== "outcome") continue;
    const { outcome } = finding;
    if (outcome.kind === "event") return outcome.payload;
    if (outcome.kind === "failed")
      throw Object.assign(new Error(outcome.error.message), { code: outcome.error.code });
  }
  return undefined;
}

function taskOutcome(
  args: ExternalTaskArgs,
  instances: readonly { readonly run_id: string; readonly map_index: number; readonly state: string }[],
): TriggerOutcome | null {
  const is = (states: readonly string[]) => (each: { readonly state: string }) => states.includes(each.state);
  const failed = instances.find(is(args.failedStates));
  if (failed !== undefined) {
    const index = failed.map_index >= 0 ? `[${failed.map_index}]` : "";
    const message = `Task "${args.taskId}${index}" of DAG "${args.dagId}" is ${failed.state} in run "${failed.run_id}".`;
    const error = { name: "ExternalTaskFailed", message, stack: null, code: "EXTERNAL_TASK_FAILED" };
    return { kind: "failed", error };
  }
  const first = instances[0];
  if (first === undefined || !instances.every(is(args.states))) return null;
  const state = first.state as ExternalTaskState;
  const payload = { dagId: args.dagId, runId: first.run_id, taskId: args.taskId, state };
  return { kind: "event", payload, key: `${first.run_id} ${state}` };
}

/** A waiter has seen the run before, so it was deleted meanwhile. */
function runGone(args: DagRunArgs): TriggerOutcome {
  const message = `Run ${runName(args)} was deleted during the wait for it.`;
  return { kind: "failed", error: { name: "DagRunGone", message, stack: null, code: "DAG_RUN_GONE" } };
}

function waitsFor<Args>(waits: readonly Waiting[]): Wait<Args>[] {
  return waits.map(({ id, condition }) => ({ id, args: condition.args as unknown as Args }));
}

function runName(args: Pick<DagRunArgs, "dagId" | "runId" | "logicalDate">): string {
  return args.runId === null
    ? `of ${args.logicalDate ?? "no date"} of DAG "${args.dagId}"`
    : `"${args.runId}" of DAG "${args.dagId}"`;
}
