/** What the server reports about the tasks of one run, each requested once. */
import { type Client, path } from "../client/client.ts";
import type { TaskInstance } from "../client/resources.ts";

/** Number of instances of a mapped task that are read; the answer explains one of them. */
const INSTANCES_SEEN = 100;

/** What blocks the start of one instance, according to the server. */
export interface Verdict {
  readonly state: string | null;
  readonly run_state: string;
  readonly rendered_map_index: string | null;
  /** For upstream_failed: the failed task at the start of the chain. */
  readonly failed_upstream: TaskInstance["failed_upstream"];
  /** For a mapped task as a whole: the number of instances per state. */
  readonly instances: readonly { readonly state: string | null; readonly count: number }[] | null;
  readonly reasons: readonly {
    readonly code: string;
    readonly message: string;
    readonly until: string | null;
    /** Other instances named by the reason. */
    readonly tasks?: readonly NamedTask[];
    /** The run of these tasks, if it is another one. */
    readonly dag_run_id?: string;
  }[];
}

export interface NamedTask {
  readonly task_id: string;
  readonly map_index: number;
  readonly state: string | null;
}

export class RunFacts {
  readonly #client: Client;
  readonly #dagId: string;
  readonly #runId: string;
  readonly #earlier = new Map<string, RunFacts>();
  readonly #known = new Map<string, Promise<unknown>>();

  constructor(client: Client, dagId: string, runId: string) {
    this.#client = client;
    this.#dagId = dagId;
    this.#runId = runId;
  }

  get runId(): string {
    return this.#runId;
  }

  /** The facts of another run of the same DAG. */
  ofRun(runId: string | undefined): RunFacts {
    if (runId === undefined || runId === this.#runId) return this;
    const known = this.#earlier.get(runId) ?? new RunFacts(this.#client, this.#dagId, runId);
    this.#earlier.set(runId, known);
    return known;
  }

  verdict(taskId: string, mapIndex: number): Promise<Verdict> {
    const where = path`/dags/${this.#dagId}/dagRuns/${this.#runId}/taskInstances/${taskId}/why`;
    return this.#once(`why ${mapIndex} ${taskId}`, () =>
      this.#client.get<Verdict>(where, {
        what: `cannot explain the task ${taskId}`,
        query: { map_index: mapIndex },
      }),
    );
  }

  instances(taskId: string): Promise<TaskInstance[]> {
    return this.#once(`instances ${taskId}`, async () => {
      const { items } = await this.#client.list<TaskInstance>({
        path: path`/dags/${this.#dagId}/dagRuns/${this.#runId}/taskInstances`,
        key: "task_instances",
        what: `cannot list the tasks of the run ${this.#runId} of ${this.#dagId}`,
        query: { task_id: taskId },
        limit: INSTANCES_SEEN,
      });
      return items;
    });
  }

  #once<T>(key: string, ask: () => Promise<T>): Promise<T> {
    const known = (this.#known.get(key) as Promise<T> | undefined) ?? ask();
    this.#known.set(key, known);
    return known;
  }
}
