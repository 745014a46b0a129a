/** What comes after what in a driven run: who began when, and who before it had ended by then. */
import assert from "node:assert/strict";
import type { DagManifest } from "@tradewind/sdk/manifest";
import { isEnded } from "./driven-event.ts";
import type { DrivenReference } from "./driven-reference.ts";

export class DrivenOrder {
  readonly #manifest: DagManifest;
  /** When each task was let through last, and when it ended last. */
  readonly #begun = new Map<string, number>();
  readonly #ended = new Map<string, number>();
  readonly #tries = new Map<string, number>();

  constructor(manifest: DagManifest) {
    this.#manifest = manifest;
  }

  /** A try begins only when everything upstream has ended, whatever became of it meanwhile. */
  note(run: DrivenReference, now: number): void {
    for (const { rule, taskId, upstream } of this.#manifest.tasks) {
      const { state, tries } = run.task(taskId);
      // A start whose task ends before it begins counts as a try, too.
      const isNew = tries > (this.#tries.get(taskId) ?? 0) && !isEnded(state);
      this.#tries.set(taskId, tries);
      if (!isEnded(state)) this.#ended.delete(taskId);
      else if (!this.#ended.has(taskId)) this.#ended.set(taskId, now);
      if (!isNew) continue;
      this.#begun.set(taskId, now);
      if (rule === "always" || rule === "oneDone") continue;
      for (const id of upstream) {
        const before = run.task(id).state;
        assert(isEnded(before), `${taskId} begins while ${id} before it is ${before}`);
      }
    }
  }

  /** What was not stored has not happened. */
  forget(run: DrivenReference): void {
    for (const { id, tries } of run.tasks()) this.#tries.set(id, tries);
  }

  /** What ran last has run after what is upstream of it. */
  check(run: DrivenReference): void {
    for (const { every, rule, rules, taskId, upstream } of this.#manifest.tasks) {
      const needsStart = every !== undefined || rules?.some(({ action }) => action === "start");
      const { state } = run.task(taskId);
      if (needsStart || rule !== "allSuccess" || (state !== "success" && state !== "failed")) continue;
      for (const id of upstream) {
        const [begun, ended] = [this.#begun.get(taskId) ?? 0, this.#ended.get(id) ?? 0];
        assert(begun >= ended, `${taskId} ran last at ${begun}, ${id} before it ended at ${ended}`);
      }
    }
  }
}
