/** Executors as the API shows them. */
import type { Client } from "./client.ts";

export interface Executor {
  readonly name: string;
  /** null: no live scheduler has it. */
  readonly type: string | null;
  readonly is_default: boolean;
  readonly schedulers: number;
  /** null: no limit. */
  readonly slots: number | null;
  readonly running: number;
  readonly waiting: number;
  readonly health: "healthy" | "unhealthy";
  readonly problems: readonly { readonly message: string; readonly remedy: string | null }[];
  readonly queues: readonly {
    readonly queue: string;
    readonly waiting: number;
    readonly running: number;
    readonly oldest_wait: number;
    /** null: the executor starts its own. */
    readonly workers: number | null;
    readonly slots: number | null;
    readonly free_slots: number | null;
  }[];
}

/** The default first. */
export async function readExecutors(client: Client): Promise<Executor[]> {
  const what = "cannot list the executors";
  return (await client.get<{ executors: Executor[] }>("/executors", { what })).executors;
}
