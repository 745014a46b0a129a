/** The tries of each task in order, with their outputs; the engine stores them in the table `task_attempt`. */
import { type Instance, isStreaming } from "@tradewind/engine/model";
import type { TryResult } from "../result.ts";

interface Try {
  readonly begun: Pick<TryResult, "tryNumber" | "startedMs">;
  result: TryResult | null;
}

type End = Pick<TryResult, "state" | "output" | "error" | "reason">;

export class History {
  readonly #tasks = new Map<string, Try[]>();

  /** Starts a try and ends an earlier one that still runs. Returns false if the try has already begun. */
  begin(instance: Instance, atMs: number): boolean {
    const open = this.#open(instance);
    if (open?.begun.tryNumber === instance.tryNumber) return false;
    if (open) this.end(instance, { ...restarted(instance), reason: "restarted" }, atMs);
    const tries = this.#tries(instance);
    tries.push({ begun: { tryNumber: instance.tryNumber, startedMs: atMs }, result: null });
    return true;
  }

  /** Returns false if no try was running. */
  end(instance: Instance, end: End, endedMs: number): boolean {
    const open = this.#open(instance);
    if (!open) return false;
    open.result = { ...open.begun, ...end, endedMs };
    return true;
  }

  of(instance: Instance): TryResult[] {
    return this.#tries(instance).flatMap(({ result }) => result ?? []);
  }

  #open(instance: Instance): Try | undefined {
    const last = this.#tries(instance).at(-1);
    return last?.result === null ? last : undefined;
  }

  #tries({ mapIndex, node }: Instance): Try[] {
    const name = `${node.id} ${mapIndex}`;
    const tries = this.#tasks.get(name) ?? [];
    this.#tasks.set(name, tries);
    return tries;
  }
}

/** The end of a try that was stopped for a restart. */
export function restarted({ node, reason }: Instance): End {
  const state = isStreaming(node.manifest) ? "success" : "skipped";
  return { state, output: undefined, error: undefined, reason };
}
