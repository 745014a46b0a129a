/** The recorded steps of function tasks, by try and name; the engine stores them in the table `journal`. */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Instance } from "@tradewind/engine/model";
import type { JournalEntry, TaskHost } from "@tradewind/sdk/program";

/** The `ctx.step` of the calling code. */
const currentStep = new AsyncLocalStorage<string>();

export type StepHost = Pick<TaskHost, "recall" | "remember" | "inStep" | "currentStep">;

export class StepMemory {
  readonly #tries = new Map<string, Map<string, JournalEntry>>();

  /** The first entry of a name wins. */
  keep(instance: Instance, name: string, entry: JournalEntry): void {
    const steps = this.#of(instance);
    if (!steps.has(name)) steps.set(name, structuredClone(entry));
  }

  /** For an attempt of the instance's current try: another try begins without entries. */
  host(instance: Instance, attempt: string): StepHost {
    const steps = this.#of(instance);
    return {
      recall: async () => structuredClone(Object.fromEntries(steps)),
      remember: async (name, value) => {
        if (instance.attempt === attempt) return this.keep(instance, name, { kind: "step", value });
        const error = new Error("This attempt is no longer the current one.");
        throw Object.assign(error, { code: "TASK_ATTEMPT_SUPERSEDED" });
      },
      inStep: (name, work) => currentStep.run(name, work),
      currentStep: () => currentStep.getStore() ?? null,
    };
  }

  #of({ node, mapIndex, tryNumber }: Instance): Map<string, JournalEntry> {
    const key = JSON.stringify([node.id, mapIndex, tryNumber]);
    const steps = this.#tries.get(key) ?? new Map<string, JournalEntry>();
    this.#tries.set(key, steps);
    return steps;
  }
}
