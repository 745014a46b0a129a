/** The tries of each task, in order: what the table `task_attempt` holds otherwise, with their outputs. */
import { type Instance, isStreaming } from "@tradewind/engine/model";
import type { TryResult } from "../result.ts";

interface Try {
  readonly begun: Pick<TryResult, "tryNumber" | "startedMs">;
  result: TryResult | null;
}

type End = Pick<TryResult, "state" | "output" | "error" | "reason">;

export class History {
  readonly #tasks = new Map<string, Try[]>();

  /** A try that has begun already goes on. What was under way before was given up for this one. true: it has begun. */
  begin(instance: Instance, atMs: number): boolean {
    const open = this.#open(instance);
    if (open?.begun.tryNumber === instance.tryNumber) return false;
    if (open) this.end(instance, { ...restarted(instance), reason: "restarted" }, atMs);
    const tries = this.#tries(instance);
    tries.push({ begun: { tryNumber: instance.tryNumber, startedMs: atMs }, result: null });
    return true;
  }

  /** false: none was under way. */
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

/** How a try ends that another one follows because somebody asked for it. */
export function restarted({ node, reason }: Instance): End {
  const state = isStreaming(node.manifest) ? "success" : "skipped";
  return { state, output: undefined, error: undefined, reason };
}
