/**
 * The state changes of an instance, with all fields that change along: its try, its wait, its times. run.ts (events) and
 * commands.ts (requests) decide which change is made.
 */

import { Moments } from "../calendar/moments.ts";
import { haltedAs } from "./halting.ts";
import type { Instance, Wait } from "./instance.ts";
import type { InstanceTable } from "./instance-table.ts";
import type { RunEvent } from "./run-event.ts";
import type { TaskState } from "./states.ts";

type Failure = Pick<Extract<RunEvent, { type: "failed" }>, "at" | "retry" | "retryAt" | "reason">;

export class Moves {
  readonly moments = new Moments();
  /** When the current event happens. */
  now = 0;
  readonly #table: InstanceTable;
  readonly #ready = new Set<Instance>();

  constructor(table: InstanceTable) {
    this.#table = table;
  }

  drainReady(): Instance[] {
    const ready = [...this.#ready].filter(({ state }) => state === "scheduled");
    this.#ready.clear();
    return ready;
  }

  /** The instance was loaded in state `scheduled`. */
  isReady(instance: Instance): void {
    this.#ready.add(instance);
  }

  queue(instance: Instance, attempt: string): true {
    instance.attempt = attempt;
    instance.attemptStartedAt = null;
    this.#table.move(instance, "queued");
    return true;
  }

  run(instance: Instance, at: number): true {
    instance.startedAt ??= at;
    instance.attemptStartedAt = at;
    // The reason of a lost attempt is stored with that attempt.
    instance.reason = null;
    this.#table.move(instance, "running");
    return true;
  }

  schedule(instance: Instance, as: "newTry" | "sameTry"): true {
    instance.attempt = null;
    instance.wait = null;
    if (as === "newTry") {
      instance.tryNumber++;
      instance.resumedAttempt = null;
      instance.infraLosses = 0;
      instance.startedAt = null;
      instance.endedAt = null;
      instance.reason = null;
    }
    this.#table.move(instance, "scheduled");
    this.#ready.add(instance);
    return true;
  }

  /** It has not started, and its upstream has changed: it waits again as if it had never been scheduled. */
  unschedule(instance: Instance): void {
    instance.tryNumber--;
    this.reset(instance);
  }

  /** Back to state `none`: it starts from the beginning if its rule allows it. */
  reset(instance: Instance): true {
    instance.attempt = null;
    instance.resumedAttempt = null;
    instance.wait = null;
    instance.retryAt = null;
    this.#table.move(instance, "pending");
    this.#table.reconsiderOne(instance);
    this.#judgeMaps(instance);
    return true;
  }

  /** Starts over, with as many retries as its task has. */
  restart(instance: Instance): true {
    instance.maxTries = instance.tryNumber + instance.node.manifest.retries;
    return this.reset(instance);
  }

  /** A stand-in also depends on its map. And the instance may be the last one that kept a map from being collapsed. */
  #judgeMaps({ level, node, ordinal }: Instance): void {
    const around = node.scope?.chain[level - 1] ?? null;
    for (const { depth, index } of node.scope?.chain.slice(0, level + 1) ?? [])
      this.#table.scopes[index]!.due.add(this.#table.expansions.ancestor(around, ordinal, depth - 1));
  }

  /** An ended instance starts again, with all the retries of its task. `archive` receives its previous state. */
  beginAgain(instance: Instance, archive: (instance: Instance) => void): void {
    if (instance.state === "removed") return;
    archive(instance);
    instance.hasBegunAgain = true;
    // As after a load: earlier runs are checked again.
    if (instance.gate === "open") instance.gate = "none";
    instance.startedAt = null;
    instance.endedAt = null;
    instance.reason = null;
    this.restart(instance);
  }

  end(
    instance: Instance,
    state: TaskState,
    by: { readonly at: number; readonly reason: string | null },
  ): void {
    instance.retryAt = null;
    instance.wait = null;
    instance.endedAt = by.at;
    instance.reason = by.reason;
    this.#table.move(instance, state);
  }

  /** Ends the instance together with its run. */
  halt(instance: Instance, by: Extract<RunEvent, { type: "halted" }>): void {
    const state = haltedAs(instance.state, by.active);
    // An attempt that remains would mean that it requested the skip itself (see implied-ends.ts).
    if (state === "skipped") instance.attempt = null;
    this.end(instance, state, by);
  }

  fail(instance: Instance, event: Failure): void {
    const isRetried = event.retry && instance.tryNumber <= instance.maxTries;
    this.end(instance, isRetried ? "up_for_retry" : "failed", event);
    if (!isRetried) return;
    instance.retryAt = event.retryAt ?? event.at;
    this.sleep(instance);
  }

  lose(instance: Instance, event: Extract<RunEvent, { type: "lost" }>): void {
    if (event.budget !== null && ++instance.infraLosses > event.budget) {
      this.fail(instance, { ...event, retry: true });
      return;
    }
    // A try that has waited resumes at its last wait, and its timeout keeps counting.
    if (instance.resumedAttempt === null) instance.startedAt = null;
    instance.reason = event.reason;
    this.schedule(instance, "sameTry");
  }

  defer(instance: Instance, event: { readonly at: number; readonly wait: Wait }): true {
    instance.startedAt ??= event.at;
    instance.wait = event.wait;
    instance.reason = null;
    this.#table.move(instance, "deferred");
    this.moments.add(instance);
    return true;
  }

  reschedule(instance: Instance, event: { readonly at: number; readonly retryAt: number }): true {
    instance.startedAt ??= event.at;
    instance.resumedAttempt = null;
    instance.retryAt = event.retryAt;
    this.#table.move(instance, "up_for_reschedule");
    this.sleep(instance);
    return true;
  }

  sleep(instance: Instance): void {
    instance.retryAt ??= this.now;
    this.moments.add(instance);
  }
}
