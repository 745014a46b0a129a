/** Why a deferred task still waits: trigger, start, timeout, and whether a triggerer polls it. */
import { APPROVAL_KIND, type ApprovalArgs } from "@tradewind/sdk/approval-request";
import type { BuiltinTriggers } from "@tradewind/sdk/builtin-triggers";
import type { ApprovalManifest } from "@tradewind/sdk/manifest";
import type { Connection } from "../../store/database/database.ts";
import type { CurrentWait, WaitedTrigger } from "../../store/list/deferrals.ts";
import { type JobRow, liveTriggerers } from "../../store/list/jobs.ts";
import type { TriggererFacts } from "../../store/trigger/triggers.ts";
import { iso } from "../server/fields.ts";
import { triggerText } from "../trigger/trigger-args.ts";
import { earlier } from "../trigger/waiting.ts";
import { awaitedRunReasons, RUN_KIND } from "./why-run.ts";

/** The default queue of triggers and triggerers. */
const DEFAULT_QUEUE = "default";
/** Maximum number of characters of a trigger's arguments. */
const ARGS_SHOWN = 120;
/** Other kinds may poll or receive events: their polls are mentioned only after the first one. */
type PolledKind = {
  [K in keyof BuiltinTriggers]: BuiltinTriggers[K]["args"] extends { readonly intervalMs: number }
    ? K
    : never;
}[keyof BuiltinTriggers];

const POLLED: Readonly<Record<PolledKind | "tradewind.process", true>> = {
  "tradewind.file": true,
  "tradewind.http": true,
  "tradewind.sql": true,
  "tradewind.s3key": true,
  "tradewind.s3prefix": true,
  "tradewind.rediskey": true,
  "tradewind.process": true,
};

export interface Finding {
  readonly code: string;
  readonly message: string;
  readonly until: Date | null;
  /** Other instances named by the reason. */
  readonly tasks?: readonly NamedInstance[];
  /** The run of these instances, if it is another one. */
  readonly runId?: string;
}

interface NamedInstance {
  readonly task_id: string;
  readonly map_index: number;
  /** null: not started. */
  readonly state: string | null;
}

/** `tryEnds`: when the task's own timeout expires. `approval`: of a task that a person's answer ends. */
export async function deferredReasons(
  connection: Connection,
  wait: CurrentWait | null,
  { tryEnds, approval }: { readonly tryEnds: Date | null; readonly approval: ApprovalManifest | undefined },
): Promise<Finding[]> {
  if (wait === null) return [reason("DEFERRED", "It waits for its trigger and holds no worker.")];
  const { deferred_at, fired_at, kind, trigger } = wait;
  if (trigger === null) {
    const when = fired_at === null ? "" : ` at ${iso(fired_at)}`;
    return [
      reason("TRIGGER_FIRED", `Its trigger, ${kind}, fired${when}: the scheduler is about to resume it.`),
    ];
  }
  if (kind === APPROVAL_KIND && approval) return [approvalReason(wait, trigger, approval)];
  const until = earlier(wait.timeout_at, tryEnds);
  const facts = [
    `It waits on ${triggerText({ kind, args: trigger.args, fired: trigger.fired }, ARGS_SHOWN)} since ${iso(deferred_at)}`,
    until === null ? ", without a timeout" : `, until ${iso(until)} at the latest`,
    pollerOf(kind, trigger),
  ];
  return [
    { code: "DEFERRED", message: `${facts.join("")}. It holds no worker.`, until },
    ...(kind === RUN_KIND ? await awaitedRunReasons(connection, trigger.args) : []),
    ...(await neglected(connection, trigger)),
  ];
}

/** Who may answer, since when, until when, and how. */
function approvalReason(
  { deferred_at, timeout_at }: CurrentWait,
  { args, id, wake_at }: WaitedTrigger,
  { form, onTimeout }: ApprovalManifest,
): Finding {
  const { assignees, title } = args as unknown as ApprovalArgs;
  const until = timeout_at ?? wake_at;
  const who = assignees.length === 0 ? "any user" : assignees.join(" or ");
  const silence = onTimeout === "answer" ? "the answer of onTimeout counts" : `the task will ${onTimeout}`;
  const limit = until === null ? "without a timeout" : `until ${iso(until)}, after which ${silence}`;
  const how = `tradewind approvals answer ${id} ${form === null ? "--approve" : "--answer '<json>'"}`;
  const message = `It waits for an answer to "${title}" from ${who} since ${iso(deferred_at)}, ${limit}. Answer with: ${how} (or --reject). It holds no worker.`;
  return { code: "NEEDS_APPROVAL", message, until };
}

function pollerOf(kind: string, trigger: WaitedTrigger): string {
  const { polled_at, state, triggerer, wake_at } = trigger;
  if (state === "timed") return wake_at === null ? "" : `; it fires at ${iso(wake_at)}`;
  if (state === "cold" && wake_at === null) return "; it never fires by itself";
  if (state === "cold") return `; it cannot fire before ${iso(wake_at)} and is not polled until then`;
  if (state === "unowned") return "; no triggerer runs it";
  const unpolled = Object.hasOwn(POLLED, kind) ? ", not polled yet" : "";
  const polled = polled_at === null ? unpolled : `, last polled at ${iso(polled_at)}`;
  return `; on triggerer ${triggerer?.id} (${triggerer?.hostname})${polled}`;
}

/** Why no triggerer runs it. */
async function neglected(connection: Connection, trigger: WaitedTrigger): Promise<Finding[]> {
  if (trigger.state === "hot") return [];
  const { queue } = trigger;
  const alive = (await liveTriggerers(connection)).map(factsOf);
  // Any triggerer fires a trigger that only needs a clock.
  const fitting = trigger.state === "timed" ? alive : alive.filter(({ queues }) => queues.includes(queue));
  if (fitting.length === 0) {
    const start =
      queue === DEFAULT_QUEUE ? "tradewind triggerer" : `tradewind triggerer --queues ${argument(queue)}`;
    const whose = trigger.state === "timed" ? "is alive" : `of queue "${queue}" is alive`;
    return [reason("NO_TRIGGERER", `No triggerer ${whose}. Start one with: ${start}`)];
  }
  if (trigger.state !== "unowned") return [];
  if (fitting.every(({ capacity, triggers }) => triggers >= capacity)) {
    const each = fitting.map(({ capacity, id, triggers }) => `job ${id} runs ${triggers} of ${capacity}`);
    return [
      reason(
        "TRIGGERER_FULL",
        `Every triggerer of queue "${queue}" is full: ${each.join(", ")}. Start another, or give them a larger --capacity.`,
      ),
    ];
  }
  return [reason("TRIGGER_UNOWNED", "A triggerer is about to run it.")];
}

interface DescribedWait {
  readonly id: number;
  readonly queues: readonly string[];
  readonly capacity: number;
  readonly triggers: number;
}

/** Facts reported by triggerers; without facts, a triggerer serves the default queue and has free capacity. */
function factsOf({ facts, id }: JobRow): DescribedWait {
  const { capacity, queues, triggers } = (facts ?? {}) as Partial<TriggererFacts>;
  return {
    id,
    queues: queues ?? [DEFAULT_QUEUE],
    capacity: capacity ?? Number.POSITIVE_INFINITY,
    triggers: triggers ?? 0,
  };
}

/** Quotes for a shell: queue names are chosen by the author. */
function argument(text: string): string {
  return /^[\w.-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

function reason(code: string, message: string): Finding {
  return { code, message, until: null };
}
