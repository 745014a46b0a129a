/**
 * The metrics of the installation. Their labels are names that operators choose (executors, queues, pools) or that are fixed;
 * never DAGs, tasks or runs, of which there may be thousands.
 */
import type { QueueDepth, SchedulerExecutor } from "../../store/execute/executors.ts";
import type { MetricFacts } from "./metric-facts.ts";

type Labels = Readonly<Record<string, string>>;
type Sample = readonly [labels: Labels, value: number];

export interface Metric {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  readonly samples: (facts: MetricFacts) => readonly Sample[];
}

/** One value without labels. */
function single(name: string, help: string, value: (facts: MetricFacts) => number): Metric {
  return { name, help, labels: [], samples: (facts) => [[{}, value(facts)]] };
}

/** One value per row. null: the row has none. */
function each<R>(
  name: string,
  help: string,
  {
    labels,
    rows,
    value,
  }: {
    readonly rows: (facts: MetricFacts) => readonly R[];
    readonly labels: { readonly [label: string]: (row: R) => string };
    readonly value: (row: R) => number | null;
  },
): Metric {
  const names = Object.keys(labels);
  const labelsOf = (row: R) => Object.fromEntries(names.map((label) => [label, labels[label]!(row)]));
  const samples = (facts: MetricFacts) =>
    rows(facts).flatMap((row) => {
      const found = value(row);
      return found === null ? [] : [[labelsOf(row), found] as const];
    });
  return { name, help, labels: names, samples };
}

const ofComponent = {
  rows: ({ components }: MetricFacts) => components,
  labels: { kind: ({ kind }: { kind: string }) => kind },
};
const byState = { state: ({ state }: { state: string }) => state };
const ofExecutor = {
  rows: ({ executors }: MetricFacts) => Object.entries(Object.groupBy(executors, ({ name }) => name)),
  labels: { executor: ([name]: ExecutorRow) => name },
};
type ExecutorRow = [name: string, of: SchedulerExecutor[] | undefined];
const byExecutorAndQueue = {
  executor: ({ executor }: { executor: string }) => executor,
  queue: ({ queue }: { queue: string }) => queue,
};
const byQueue = { queue: ({ queue }: { queue: string }) => queue };
const ofWorkers = { rows: ({ workers }: MetricFacts) => workers, labels: byQueue };
const ofPool = {
  rows: ({ pools }: MetricFacts) => pools,
  labels: { pool: ({ name }: { name: string }) => name },
};

/** Of all schedulers together; null if one has no limit. */
function total(of: readonly SchedulerExecutor[] = [], value: (slots: number, active: number) => number) {
  return of.reduce<number | null>(
    (sum, { active, slots }) => (sum === null || slots === null ? null : sum + value(slots, active)),
    0,
  );
}

export const METRICS: readonly Metric[] = [
  each("tradewind_components", "Live services. Workers include the pods of tasks.", {
    ...ofComponent,
    value: ({ alive }) => alive,
  }),
  each("tradewind_component_heartbeat_age_seconds", "Age of the oldest last heartbeat.", {
    ...ofComponent,
    value: ({ heartbeat_age }) => heartbeat_age,
  }),
  each("tradewind_dag_runs", "Active runs, at most 100,000 per state.", {
    rows: ({ runs }) => runs,
    labels: byState,
    value: ({ count }) => count,
  }),
  each("tradewind_task_instances", "Unfinished task instances of running runs; at most 100,000 are read.", {
    rows: ({ instances }) => instances,
    labels: byState,
    value: ({ count }) => count,
  }),
  single(
    "tradewind_schedule_delay_seconds",
    "Since the oldest due run had to be created; 0: none is due.",
    (facts) => facts.delays.schedule,
  ),
  single(
    "tradewind_run_start_delay_seconds",
    "Since the oldest queued run had to start; 0: none waits.",
    (facts) => facts.delays.start,
  ),
  each("tradewind_executor_slots", "Tasks at once, of all schedulers; missing: no limit.", {
    ...ofExecutor,
    value: ([, of]) => total(of, (slots) => slots),
  }),
  each("tradewind_executor_free_slots", "Slots without a task; missing: no limit.", {
    ...ofExecutor,
    value: ([, of]) => total(of, (slots, active) => Math.max(0, slots - active)),
  }),
  each("tradewind_executor_tasks", "Tasks and callbacks that run, or wait for a process or a worker.", {
    ...ofExecutor,
    value: ([, of = []]) => of.reduce((sum, { active }) => sum + active, 0),
  }),
  each("tradewind_executor_failing_schedulers", "Live schedulers whose executor cannot start tasks.", {
    ...ofExecutor,
    value: ([, of = []]) => of.filter(({ problem }) => problem !== null).length,
  }),
  {
    name: "tradewind_queue_tasks",
    help: "Tasks and callbacks of remote executors: waiting for a worker, or running on one.",
    labels: ["executor", "queue", "state"],
    samples: ({ queues }) =>
      queues.flatMap(({ executor, queue, running, waiting }) => [
        [{ executor, queue, state: "waiting" }, waiting] as const,
        [{ executor, queue, state: "running" }, running] as const,
      ]),
  },
  each<QueueDepth>(
    "tradewind_queue_oldest_wait_seconds",
    "How long the oldest task of the queue has waited for a worker.",
    {
      rows: ({ queues }) => queues,
      labels: byExecutorAndQueue,
      value: ({ oldest_wait_seconds }) => oldest_wait_seconds,
    },
  ),
  each("tradewind_queue_workers", "Live workers that serve the queue and do not drain.", {
    ...ofWorkers,
    value: ({ workers }) => workers,
  }),
  each("tradewind_queue_slots", "Slots of these workers, which may serve other queues, too.", {
    ...ofWorkers,
    value: ({ slots }) => slots,
  }),
  each("tradewind_queue_free_slots", "Of these slots, those without a task.", {
    ...ofWorkers,
    value: ({ free_slots }) => free_slots,
  }),
  each("tradewind_pool_slots", "Slots of the pool; missing: no limit.", {
    ...ofPool,
    value: ({ slots }) => (slots < 0 ? null : slots),
  }),
  each("tradewind_pool_occupied_slots", "Slots of the pool that tasks occupy.", {
    ...ofPool,
    value: ({ occupied }) => occupied,
  }),
  each("tradewind_pool_open_slots", "Slots of the pool that are free; missing: no limit.", {
    ...ofPool,
    value: ({ occupied, slots }) => (slots < 0 ? null : Math.max(0, slots - occupied)),
  }),
  each("tradewind_triggers", "Triggers that have to run now; one with two replicas counts twice.", {
    rows: ({ triggers }) => triggers,
    labels: byQueue,
    value: ({ triggers }) => triggers,
  }),
  each(
    "tradewind_unclaimed_triggers",
    "Triggers that no triggerer has claimed for 5 s, at most 1,000 per queue.",
    {
      rows: ({ triggerers }) => triggerers.unclaimed,
      labels: byQueue,
      value: ({ triggers }) => triggers,
    },
  ),
  single(
    "tradewind_triggerer_triggers",
    "Triggers in live triggerers.",
    ({ triggerers }) => triggerers.triggers,
  ),
  single(
    "tradewind_triggerer_capacity",
    "Triggers that live triggerers can run.",
    ({ triggerers }) => triggerers.capacity,
  ),
  single(
    "tradewind_signal_unread_age_seconds",
    "Age of the oldest signal that an active listener or a schedule has not processed; up to a minute is normal.",
    ({ unreadSignalAge }) => unreadSignalAge,
  ),
  single(
    "tradewind_import_errors",
    "DAG files that do not load, at most 1,000.",
    ({ errors }) => errors.import_errors,
  ),
  single(
    "tradewind_signal_dead_letters",
    "Signals that a listener has given up, at most 1,000.",
    ({ errors }) => errors.dead_letters,
  ),
  single(
    "tradewind_dead_deliveries",
    "Notices that could not be delivered, at most 1,000.",
    ({ errors }) => errors.dead_deliveries,
  ),
];
