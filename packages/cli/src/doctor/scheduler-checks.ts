import type { Client } from "../client/client.ts";
import type { Health } from "../client/resources.ts";
import { relativeTime } from "../output/when.ts";
import type { Check } from "./checks.ts";

/** DAGs that no live scheduler serves. */
export function* checkServed({ unserved_dags }: Health["scheduler"]): Generator<Check> {
  const dags = unserved_dags ?? [];
  if (dags.length === 0) return;
  yield {
    name: "scheduler",
    result: "warn",
    says: `no live scheduler serves ${dags.join(", ")}: each scheduler drains, or was started with --dags for other DAGs`,
    remedy: `tradewind scheduler --dags ${dags.join(",")}`,
  };
}

/** A live scheduler and its reported facts. */
export interface SchedulerJob {
  readonly id: number;
  readonly hostname: string | null;
  readonly facts: {
    readonly draining?: boolean;
    readonly drain_until?: string;
    readonly attempts?: number;
    readonly slots?: number | null;
    readonly streaming_slots?: number;
    readonly streaming_tasks?: number;
  } | null;
}

export async function* checkSchedulers(client: Client): AsyncGenerator<Check> {
  const { items } = await client.list<SchedulerJob>({
    path: "/jobs",
    query: { job_type: "SchedulerJob", is_alive: true },
    key: "jobs",
    what: "cannot list the schedulers",
    limit: 0,
  });
  yield* judgeSchedulers(items);
}

/** Causes of waiting tasks while schedulers are alive: all of them drain, or streaming tasks hold their slots. */
export function* judgeSchedulers(jobs: readonly SchedulerJob[]): Generator<Check> {
  const name = "schedulers";
  const draining = jobs.filter(({ facts }) => facts?.draining);
  for (const { facts, hostname, id } of draining) {
    const isAll = draining.length === jobs.length;
    const until = facts?.drain_until ? ` until ${relativeTime(facts.drain_until)}` : "";
    yield {
      name,
      result: isAll ? "warn" : "ok",
      says: `the scheduler on ${hostname} (job ${id}) drains${until}: ${stillRunning(facts?.attempts ?? 0)}`,
      ...(isAll && { remedy: "no other scheduler starts tasks; start one: tradewind scheduler" }),
    };
  }
  for (const { facts, hostname, id } of jobs) {
    const { slots = null, streaming_slots = 0, streaming_tasks = 0 } = facts ?? {};
    const held = Math.max(0, streaming_tasks - streaming_slots);
    if (slots === null || held === 0 || held < slots - 1) continue;
    yield {
      name,
      result: "warn",
      says: `streaming tasks hold ${Math.min(held, slots)} of the ${slots} slots of the scheduler on ${hostname} (job ${id}): ${held >= slots ? "no other task can run there" : "other tasks run there one at a time"}`,
      remedy: `give them separate slots: tradewind scheduler --streaming-slots ${streaming_tasks}`,
    };
  }
}

function stillRunning(tasks: number): string {
  return tasks === 1 ? "1 task is still running" : `${tasks} tasks are still running`;
}
