/** Triggers on the engine's own state: runs, tasks, and calls of its webhooks. */

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

/**
 * A run, by its id or by its logical date.
 * @example const run: WhichRun = { logicalDate: "2026-01-31" };
 */
export type WhichRun =
  | { readonly runId: string; readonly logicalDate?: undefined }
  | { readonly logicalDate: Moment; readonly runId?: undefined };

/**
 * Options of a {@link DagRunTrigger} without the run.
 * @example const options: DagRunOfOptions = { dagId: "sales", states: ["success"] };
 */
export interface DagRunOfOptions {
  readonly dagId: string;
  /** The states in which it fires (default ["success", "failed"]). */
  readonly states?: readonly DagRunState[];
}

/**
 * Options of a {@link DagRunTrigger}.
 * @example const options: DagRunOptions = { dagId: "sales", logicalDate: "2026-01-31", missing: "fail" };
 */
export type DagRunOptions = TriggerPlace &
  DagRunOfOptions &
  WhichRun & {
    /** The effect of a run that does not exist: wait for it, or fail (default "wait"). */
    readonly missing?: "wait" | "fail";
  };

/**
 * Fires when a run has ended; waits for a run that does not exist yet.
 * @example const { state } = await ctx.until("sales", new DagRunTrigger({ dagId: "sales", logicalDate: "2026-01-31" }));
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

/**
 * Options of an {@link ExternalTaskTrigger} without the run.
 * @example const options: ExternalTaskOfOptions = { dagId: "sales", taskId: "load", states: ["success", "skipped"] };
 */
export interface ExternalTaskOfOptions {
  readonly dagId: string;
  readonly taskId: string;
  /** One instance of a mapped task (default: the whole task). */
  readonly mapIndex?: number;
  /** The states in which it fires (default ["success"]). */
  readonly states?: readonly ExternalTaskState[];
  /** The states in which it fails (default ["failed", "upstream_failed"], without those in `states`). */
  readonly failedStates?: readonly ExternalTaskState[];
}

/**
 * Options of an {@link ExternalTaskTrigger}.
 * @example const options: ExternalTaskOptions = { dagId: "sales", taskId: "load", logicalDate: "2026-01-31" };
 */
export type ExternalTaskOptions = TriggerPlace & ExternalTaskOfOptions & WhichRun;

/**
 * Fires when a task of another DAG has succeeded, and fails when it has failed.
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

/** An explicit [] means that no state fails it. */
function noWords(o: OptionReader<ExternalTaskOptions>): boolean {
  const given = o.raw("failedStates");
  return Array.isArray(given) && given.length === 0;
}

/**
 * Options of a {@link WebhookTrigger}.
 * @example const options: WebhookOptions = { name: "approvals", after: "2027-01-04T08:00:00Z" };
 */
export interface WebhookOptions extends TriggerPlace {
  /** The name of the webhook, which is part of its URL. */
  readonly name: string;
  /** Only calls after this moment count (default: the start of the waiting run). */
  readonly after?: Moment;
}

/**
 * Fires when a webhook is called.
 * @example const { body } = await ctx.until("approved", new WebhookTrigger({ name: "approvals" }), { timeout: "2d" });
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
