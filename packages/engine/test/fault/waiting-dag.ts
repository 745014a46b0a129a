/**
 * A DAG of waiting tasks, built from a script with the real SDK. Imported by the DAG files that the fault tests write, so it
 * runs in task processes. The waits of a try are a function of (task, try number) alone: lost attempts do not change which
 * waits have ended and which follow.
 */
import { setTimeout as sleep } from "node:timers/promises";
import {
  all,
  type Dag,
  type DagBuilder,
  DateTimeTrigger,
  DeferralTimeoutError,
  type Deferred,
  dag,
  Operator,
  on,
  type TaskContext,
  TimeDeltaTrigger,
  type Waitable,
} from "tradewind";
import { recordWait, TIMED_OUT, type WaitLine } from "./wait-ledger.ts";
import {
  Busy,
  ColdGate,
  type EndingName,
  Gate,
  type GateEvent,
  LastGate,
  Letters,
  Notices,
  TwinGate,
} from "./waiting-triggers.ts";

/** One wait. A gate whose name begins with "$" belongs to the group of its run. */
export type WaitScript =
  /** From the beginning of the wait. */
  | { readonly kind: "delta"; readonly ms: number }
  /** The gate of the run, shared by all tasks that wait for it. */
  | { readonly kind: "moment" }
  | { readonly kind: "gate" | "twin" | "cold"; readonly gate: string }
  /** A gate and a time, together. */
  | { readonly kind: "joint"; readonly gate: string; readonly ms: number }
  /** The trigger ends the task. */
  | { readonly kind: "ending"; readonly gate: string; readonly how: EndingName }
  /** For a gate that never opens. After the timeout an operator is skipped or fails; a function resumes. */
  | { readonly kind: "starve"; readonly timeoutMs: number; readonly onTimeout: "skip" | "fail" | "fatal" }
  /** The time of the event is about the time of the timeout. */
  | { readonly kind: "race"; readonly ms: number; readonly timeoutMs: number }
  /** The trigger blocks its process. */
  | { readonly kind: "busy" };

export interface WaitingTask {
  readonly id: string;
  /** "start": an operator whose first wait needs no worker; "node": a trigger in the graph; others wait while they run. */
  readonly kind: "operator" | "function" | "start" | "node";
  /** The waits of try 1, 2, ...; the last one applies to all further tries. */
  readonly tries: readonly (readonly WaitScript[])[];
  readonly options: Readonly<Record<string, unknown>>;
  /** How long each attempt works. */
  readonly workMs: number;
}

export interface WaitingDag {
  readonly id: string;
  /** The folder of the gates. */
  readonly gates: string;
  readonly tasks: readonly WaitingTask[];
  /** Creates a run for each letter in this folder. */
  readonly mail?: { readonly kind: "letters" | "notices"; readonly folder: string };
}

export const NEVER = "never";

export function waitingDag(script: WaitingDag): Dag {
  const { mail } = script;
  const schedule =
    mail &&
    on(mail.kind === "letters" ? new Letters({ folder: mail.folder }) : new Notices({ folder: mail.folder }));
  return dag(script.id, { maxActiveRuns: 64, ...(schedule ? { schedule } : {}) }, (d) => {
    const tasks = script.tasks.map((task) => addTask(d, task, script.gates));
    // Runs when all tasks have ended, in any state: so the end of the run does not depend on their states.
    d.task("end", { after: tasks, rule: "allDone" }, () => "over");
  });
}

function addTask(d: DagBuilder, task: WaitingTask, gates: string) {
  const { id } = task;
  const options = task.options as object;
  const first = task.tries[0]?.[0] as WaitScript;
  if (task.kind === "node") return d.trigger(id, triggerOf(first, { gates }) as Waitable<string>, options);
  if (task.kind === "function")
    return d.task(id, options, (_, ctx) => waits(task, gates, ctx as TaskContext));
  if (task.kind === "start") return d.operator(id, new WaitsFromStart({ task, gates }), options);
  return d.operator(id, new Waits({ task, gates }), options);
}

/** The number of ended waits. */
interface Progress {
  readonly passed: number;
}

class Waits extends Operator<{ readonly task: WaitingTask; readonly gates: string }, number> {
  override async execute(ctx: TaskContext) {
    record(ctx, "start");
    return await this.next(ctx, 0);
  }

  async resume(ctx: TaskContext, event: GateEvent, { passed }: Progress) {
    record(ctx, "start");
    record(ctx, "pass", { step: passed - 1, event: event as never });
    return await this.next(ctx, passed);
  }

  protected async next(ctx: TaskContext, passed: number): Promise<Deferred | number> {
    await sleep(this.args.task.workMs);
    const wait = waitsOf(this.args.task, ctx.tryNumber)[passed];
    if (wait !== undefined) return this.wait(wait, passed + 1, facts(ctx, this.args.gates));
    record(ctx, "end");
    return passed;
  }

  protected wait(wait: WaitScript, passed: number, where: Facts): Deferred {
    const trigger = triggerOf(wait, where) as Waitable<GateEvent>;
    return this.defer({ trigger, method: "resume", kwargs: { passed }, ...limitOf(wait) }) as Deferred;
  }
}

class WaitsFromStart extends Waits {
  override startFrom() {
    const { task, gates } = this.args;
    return this.wait(task.tries[0]?.[0] as WaitScript, 1, { gates });
  }
}

async function waits(task: WaitingTask, gates: string, ctx: TaskContext): Promise<number> {
  record(ctx, "start");
  const script = waitsOf(task, ctx.tryNumber);
  for (const [step, wait] of script.entries()) {
    await ctx.step(`once ${step}`, () => {
      record(ctx, "once", { step });
      return step;
    });
    const trigger = triggerOf(wait, facts(ctx, gates)) as Waitable<string>;
    const { timeout } = limitOf(wait);
    const event = await ctx
      .until(`wait ${step}`, trigger, timeout === undefined ? {} : { timeout })
      .catch((error) => {
        if (error instanceof DeferralTimeoutError) return TIMED_OUT;
        throw error;
      });
    record(ctx, "pass", { step, event });
  }
  await sleep(task.workMs);
  record(ctx, "end");
  return script.length;
}

export function waitsOf(task: Pick<WaitingTask, "tries">, tryNumber: number): readonly WaitScript[] {
  return task.tries[Math.min(tryNumber, task.tries.length) - 1] ?? [];
}

function limitOf(wait: WaitScript): { timeout?: number; onTimeout?: "skip" | "fail" | "fatal" } {
  if (wait.kind === "starve") return { timeout: wait.timeoutMs, onTimeout: wait.onTimeout };
  return wait.kind === "race" ? { timeout: wait.timeoutMs, onTimeout: "skip" } : {};
}

/** What a wait's trigger needs besides the script; without a worker only the first is known. */
interface Facts {
  readonly gates: string;
  readonly group?: string;
  readonly moment?: string;
  readonly name?: string;
}

function facts(ctx: TaskContext, gates: string): Facts {
  const { group, moment } = ctx.params;
  return { gates, group: String(group), moment: String(moment), name: `${ctx.run.id} ${ctx.taskId}` };
}

function triggerOf(wait: WaitScript, { gates, group, moment = "", name = "" }: Facts): Waitable<unknown> {
  const gate = (of: string) => ({ folder: gates, gate: gateName(of, group ?? "") });
  switch (wait.kind) {
    case "delta":
    case "race":
      return new TimeDeltaTrigger({ delta: wait.ms });
    case "moment":
      return new DateTimeTrigger({ moment });
    case "gate":
      return new Gate(gate(wait.gate));
    case "twin":
      return new TwinGate(gate(wait.gate));
    case "cold":
      return new ColdGate({ ...gate(wait.gate), moment });
    case "joint":
      return all({ gate: new Gate(gate(wait.gate)), soon: new TimeDeltaTrigger({ delta: wait.ms }) });
    case "ending":
      return new LastGate({ ...gate(wait.gate), how: wait.how });
    case "starve":
      return new Gate(gate(NEVER));
    case "busy":
      return new Busy({ name });
  }
}

export function gateName(gate: string, group: string): string {
  return gate.replace("$", `${group}_`);
}

function record(
  ctx: TaskContext,
  what: WaitLine["what"],
  more: Partial<Pick<WaitLine, "step" | "event">> = {},
): void {
  recordWait({
    dag: ctx.run.dagId,
    run: ctx.run.id,
    task: ctx.taskId,
    try: ctx.tryNumber,
    attempt: ctx.attempt,
    what,
    step: null,
    event: null,
    ...more,
  });
}
