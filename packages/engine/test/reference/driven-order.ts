/** Checks the order of tasks in a signal-driven run: a task begins only after its upstream has ended. */
import assert from "node:assert/strict";
import type { DagManifest } from "@tradewind/sdk/manifest";
import { isEnded } from "./driven-event.ts";
import type { DrivenReference } from "./driven-reference.ts";
import { EARLY } from "./reference-rules.ts";

export class DrivenOrder {
  readonly #manifest: DagManifest;
  /** When each task was last scheduled, and when it last ended. */
  readonly #begun = new Map<string, number>();
  readonly #ended = new Map<string, number>();
  readonly #tries = new Map<string, number>();

  constructor(manifest: DagManifest) {
    this.#manifest = manifest;
  }

  /** A try begins only when all upstream tasks have ended, in any state. */
  record(run: DrivenReference, now: number): void {
    for (const { rule, taskId, upstream } of this.#manifest.tasks) {
      const { state, tries } = run.task(taskId);
      // A start whose task ends before it begins also counts as a try.
      const isNew = tries > (this.#tries.get(taskId) ?? 0) && !isEnded(state);
      this.#tries.set(taskId, tries);
      if (!isEnded(state)) this.#ended.delete(taskId);
      else if (!this.#ended.has(taskId)) this.#ended.set(taskId, now);
      if (!isNew) continue;
      this.#begun.set(taskId, now);
      if (EARLY.includes(rule)) continue;
      for (const id of upstream) {
        const before = run.task(id).state;
        assert(isEnded(before), `${taskId} begins while its upstream ${id} is ${before}`);
      }
    }
  }

  /** Drops the tries that were not committed. */
  forget(run: DrivenReference): void {
    for (const { id, tries } of run.tasks()) this.#tries.set(id, tries);
  }

  /** The last try of a task began after its upstream had ended. */
  check(run: DrivenReference): void {
    for (const { every, rule, rules, taskId, upstream } of this.#manifest.tasks) {
      const needsStart = every !== undefined || rules?.some(({ action }) => action === "start");
      const { state } = run.task(taskId);
      if (needsStart || rule !== "allSuccess" || (state !== "success" && state !== "failed")) continue;
      for (const id of upstream) {
        const [begun, ended] = [this.#begun.get(taskId) ?? 0, this.#ended.get(id) ?? 0];
        assert(begun >= ended, `${taskId} last began at ${begun}, but its upstream ${id} ended at ${ended}`);
      }
    }
  }
}
