/**
 * Custom triggers: a task waits for one without a process of its own. A trigger runs in a child process of a triggerer,
 * next to thousands of others, and may be restarted elsewhere at any time: its arguments are its only state.
 */

import { show, TriggerError } from "../check/errors.ts";
import { isName, NAME_FORM } from "../check/name.ts";
import { jsonCopy } from "../check/output-check.ts";
import { describeIssue, isStandardSchema, type StandardSchemaV1 } from "../check/standard-schema.ts";
import type { TriggerCall } from "../manifest.ts";
import type { CancelContext } from "../runtime/context.ts";
import type { Ending } from "../runtime/ending.ts";
import { TRIGGER, type TriggerProgram } from "../runtime/program.ts";
import type { Services } from "../runtime/services.ts";
import { isoInstant } from "../schedule/instant.ts";
import { programOf } from "./trigger-program.ts";
import { CALL, type EVENT, type Waitable } from "./waitable.ts";

/**
 * The context of `run`, `poll` and `cleanup`.
 * @example const ready = async (ctx: TriggerContext) => (await fetch("https://jobs.test/7", { signal: ctx.abort })).ok;
 */
export interface TriggerContext extends Services {
  /**
   * Aborted when this process no longer runs the trigger; `reason.kind` is a {@link TriggerAbortKind}, and tasks still
   * wait unless it is "cancelled" or "fired".
   */
  readonly abort: AbortSignal;
  /** Records that the trigger has polled its source, for status displays. */
  polled(): void;
  /** Runs `work` once fewer than `limit` others are running for the same key, e.g. a host name. */
  limited<T>(key: string, limit: number, work: () => Promise<T>): Promise<T>;
}

/**
 * A custom trigger: a class with JSON arguments, a `static id` and a `run` that yields events.
 * @see docs/guides/custom-triggers.md for `static schema`, `queue` and `replicas`.
 *
 * @example
 * ```ts
 * class MailArrived extends Trigger<{ box: string }, { subject: string }> {
 *   static id = "acme.mail_arrived";
 *   async *run({ abort }: TriggerContext) {
 *     for await (const mail of readMails(this.args.box, abort)) {
 *       yield { subject: mail.subject };
 *       await mail.acknowledge();
 *     }
 *   }
 * }
 * ```
 */
export abstract class Trigger<Args = void, Event = void> implements Waitable<Event> {
  declare readonly [EVENT]?: Event;

  readonly args: Args;

  constructor(args: Args) {
    this.args = args;
  }

  /**
   * Yields events, or {@link endWith} to end the waiting task at once. Returning means that there are no more events.
   */
  abstract run(ctx: TriggerContext): AsyncIterable<Event | Ending>;

  /** The earliest moment at which it can fire; the trigger is started shortly before. */
  wakeAt?(): Date | null;

  /**
   * Runs in each process that stops running the trigger: after its last event, when no task waits for it, and when it
   * moves to another triggerer. Releases resources of this process only: see `onCancel`. Its errors are logged.
   */
  cleanup?(ctx: TriggerContext): unknown;

  /**
   * Runs on a worker if a wait for this trigger ends without its event: the task was cancelled, cleared, marked,
   * restarted or timed out, or its run ended. Runs once per wait, also if other tasks still wait for the same trigger,
   * and possibly twice after a crash.
   *
   * @example
   * ```ts
   * class JobDone extends PollTrigger<{ job: string }, { rows: number }> {
   *   static id = "acme.job_done";
   *   async poll() {
   *     return (await findJob(this.args.job)).result;
   *   }
   *   override async onCancel(ctx: CancelContext) {
   *     ctx.log.info("cancelling", { job: this.args.job, cause: ctx.cause });
   *     await cancelJob(this.args.job);
   *   }
   * }
   * ```
   */
  onCancel?(ctx: CancelContext): unknown;

  /** Distinguishes two events if two triggerers run the same trigger (default: by content). */
  key?(event: Event): string;

  /** For the engine. Undefined for a class without an id of its own, e.g. a base class. */
  static get [TRIGGER](): TriggerProgram | undefined {
    // biome-ignore lint/complexity/noThisInStatic: inherited by every subclass, each with an id of its own.
    const kind = this as unknown as TriggerClass;
    const id = ownId(kind);
    // Checked when the trigger is started: an invalid class must not hide the other classes of its bundle.
    return typeof id === "string" ? programOf(id, () => checkedClass(kind)) : undefined;
  }

  [CALL](): TriggerCall {
    const kind = checkedClass(this.constructor as unknown as TriggerClass);
    const args = jsonCopy(this.args, {
      root: `trigger ${kind.id}: args`,
      notJson: (message) => new TriggerError("TW_TRIGGER_ARGS", message),
      tooLarge: (message) => new TriggerError("TW_TRIGGER_ARGS", message),
    });
    checkNow(kind, args);
    const wakeAt = this.wakeAt?.() ?? null;
    const at = wakeAt === null ? null : isoInstant(wakeAt);
    if (wakeAt !== null && at === null) {
      throw new TriggerError(
        "TW_BAD_TRIGGER",
        `trigger ${kind.id}: wakeAt must return a Date or null, got ${show(wakeAt)}`,
      );
    }
    return {
      kind: kind.id,
      args,
      source: "bundle",
      queue: kind.queue,
      replicas: kind.replicas,
      wake: at === null ? null : { at },
      timed: null,
      ...(typeof this.onCancel === "function" && { onCancel: true as const }),
    };
  }
}

/** A trigger class with checked statics. */
export interface TriggerKind {
  readonly id: string;
  readonly queue: string;
  readonly replicas: 1 | 2;
  readonly schema: StandardSchemaV1 | null;
  make(args: unknown): Trigger<unknown, unknown>;
}

interface TriggerClass {
  readonly name: string;
  readonly id?: unknown;
  readonly queue?: unknown;
  readonly replicas?: unknown;
  readonly schema?: unknown;
  new (args: unknown): Trigger<unknown, unknown>;
}

/** An inherited id does not count: two classes with one id could not be distinguished in a bundle. */
function ownId(kind: TriggerClass): unknown {
  return Object.hasOwn(kind, "id") ? kind.id : undefined;
}

function checkedClass(kind: TriggerClass): TriggerKind {
  const where = `trigger class ${kind.name || "(without a name)"}`;
  const id = ownId(kind);
  if (typeof id !== "string" || !/^(?!\.+$)(?!tradewind\.)[A-Za-z0-9_.-]{1,250}$/.test(id)) {
    throw bad(
      `${where}: static id must be 1 to 250 of the characters A-Z a-z 0-9 _ . - and not begin with "tradewind.", got ${show(id)}; write e.g. static id = "acme.job_done"`,
    );
  }
  const { queue = "default", replicas = 1, schema = null } = kind;
  if (!isName(queue)) throw bad(`${where}: static queue must be ${NAME_FORM}, got ${show(queue)}`);
  if (replicas !== 1 && replicas !== 2)
    throw bad(`${where}: static replicas must be 1 or 2, got ${show(replicas)}`);
  if (schema !== null && !isStandardSchema(schema)) {
    throw bad(
      `${where}: static schema must be a Standard Schema validator, e.g. z.object({...}), got ${show(schema)}`,
    );
  }
  return { id, queue, replicas, schema, make: (args) => new kind(args) };
}

/** A synchronous validator runs where the trigger is used; an asynchronous one only where it runs. */
function checkNow({ id, schema }: TriggerKind, args: unknown): void {
  const result = schema?.["~standard"].validate(args);
  if (result === undefined) return;
  if (result instanceof Promise) {
    // The triggerer validates again and reports the error.
    result.catch(() => {});
  } else if (result.issues) {
    throw new TriggerError(
      "TW_TRIGGER_ARGS",
      `trigger ${id}: args: ${result.issues.map(describeIssue).join("; ")}`,
    );
  }
}

function bad(message: string): TriggerError {
  return new TriggerError("TW_BAD_TRIGGER", message);
}
