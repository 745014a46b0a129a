/** Triggers on what the engine itself knows: runs, tasks, calls of its webhooks. */

import type { Moment } from "../schedule/instant.ts";
import { BuiltinTrigger, OptionReader, type TriggerPlace } from "./builtin-trigger.ts";
import type { DagRunState, ExternalTaskState } from "./builtin-triggers.ts";

const RUN_STATES: readonly DagRunState[] = ["queued", "running", "success", "failed"];
const TASK_STATES: readonly ExternalTaskState[] = [
  "success",
  "failed",
  "skipped",
  "upstream_failed",
  "removed",
];

/** A run, by its id or by its logical date: exactly one of them. */
export type WhichRun =
  | { readonly runId: string; readonly logicalDate?: undefined }
  | { readonly logicalDate: Moment; readonly runId?: undefined };

/** {@link DagRunTrigger} without the run. */
export interface DagRunOfOptions {
  readonly dagId: string;
  /** Fires when the run is in one of these (["success", "failed"]). */
  readonly states?: readonly DagRunState[];
}

export type DagRunOptions = TriggerPlace &
  DagRunOfOptions &
  WhichRun & {
    /** What a run that is not there means: it has yet to come, or it is gone for good ("wait"). */
    readonly missing?: "wait" | "fail";
  };

/**
 * Fires when a run has ended; one that does not exist yet is waited for.
 *
 * @example
 * ```ts
 * const { state } = await ctx.until("sales", new DagRunTrigger({ dagId: "sales", logicalDate: "2026-01-31" }));
 * ```
 */
export class DagRunTrigger extends BuiltinTrigger<"tradewind.dagrun"> {
  constructor(options: DagRunOptions) {
    const o = new OptionReader("DagRunTrigger", options);
    o.oneOf("runId", "logicalDate");
    const missing = o.raw("missing") ?? "wait";
    if (missing !== "wait" && missing !== "fail") o.refuse("missing", 'must be "wait" or "fail"');
    super(
      "tradewind.dagrun",
      {
        dagId: o.text("dagId"),
        runId: o.optionalText("runId"),
        logicalDate: o.optionalMoment("logicalDate"),
        states: o.words("states", RUN_STATES, ["success", "failed"]),
        ...(missing === "fail" && { missing }),
      },
      o.place(),
    );
  }
}

/** {@link ExternalTaskTrigger} without the run. */
export interface ExternalTaskOfOptions {
  readonly dagId: string;
  readonly taskId: string;
  /** One instance of a mapped task; without it the task as a whole. */
  readonly mapIndex?: number;
  /** Fires when the task is in one of these (["success"]). */
  readonly states?: readonly ExternalTaskState[];
  /** Fails when it is in one of these (["failed", "upstream_failed"], without those among `states`). */
  readonly failedStates?: readonly ExternalTaskState[];
}

export type ExternalTaskOptions = TriggerPlace & ExternalTaskOfOptions & WhichRun;

/**
 * Fires when a task of another DAG has ended well, and fails when it has not.
 *
 * @example
 * ```ts
 * const loaded = new ExternalTaskTrigger({ dagId: "sales", taskId: "load", logicalDate: "2026-01-31" });
 * await ctx.until("loaded", loaded, { timeout: "6h" });
 * ```
 */
export class ExternalTaskTrigger extends BuiltinTrigger<"tradewind.externaltask"> {
  constructor(options: ExternalTaskOptions) {
    const o = new OptionReader("ExternalTaskTrigger", options);
    o.oneOf("runId", "logicalDate");
    const states = o.words("states", TASK_STATES, ["success"]);
    const failedStates =
      o.raw("failedStates") === null
        ? (["failed", "upstream_failed"] as const).filter((state) => !states.includes(state))
        : noWords(o)
          ? []
          : o.words("failedStates", TASK_STATES, []);
    if (failedStates.some((state) => states.includes(state))) {
      o.refuse("failedStates", "must not have a state that is also in states");
    }
    super(
      "tradewind.externaltask",
      {
        dagId: o.text("dagId"),
        taskId: o.text("taskId"),
        runId: o.optionalText("runId"),
        logicalDate: o.optionalMoment("logicalDate"),
        mapIndex: o.optionalWhole("mapIndex", 0),
        states,
        failedStates,
      },
      o.place(),
    );
  }
}

/** [] is meant: nothing fails it. */
function noWords(o: OptionReader<ExternalTaskOptions>): boolean {
  const given = o.raw("failedStates");
  return Array.isArray(given) && given.length === 0;
}

export interface WebhookOptions extends TriggerPlace {
  /** The webhook's name: part of its URL. */
  readonly name: string;
  /** Only calls received after this moment count (the start of the run that waits). */
  readonly after?: Moment;
}

/**
 * Fires when a webhook is called.
 *
 * @example
 * ```ts
 * const { body } = await ctx.until("approved", new WebhookTrigger({ name: "approvals" }), { timeout: "2d" });
 * ```
 */
export class WebhookTrigger extends BuiltinTrigger<"tradewind.webhook"> {
  constructor(options: WebhookOptions) {
    const o = new OptionReader("WebhookTrigger", options);
    const name = o.text("name");
    if (!/^(?!\.+$)[A-Za-z0-9_.-]{1,250}$/.test(name)) {
      o.refuse("name", "must be 1 to 250 of the characters A-Z a-z 0-9 _ . -");
    }
    super("tradewind.webhook", { name, after: o.optionalMoment("after") }, o.place());
  }
}
