/** Finds the worker named by a `<worker>` argument: its name, or its number. */
import { CliError, usageError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { type Client, path } from "./client.ts";

export interface Worker {
  readonly id: number;
  readonly name: string;
  readonly hostname: string;
  readonly pid: number;
  readonly version: string;
  readonly state: "alive" | "draining" | "dead" | "stopped";
  /** null: the worker of one pod. */
  readonly queues: readonly string[] | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly slots: number;
  readonly free_slots: number;
  readonly running: number;
  readonly start_date: string;
  readonly end_date: string | null;
  readonly latest_heartbeat: string;
  readonly heartbeat_age: number;
}

export interface WorkerDetail extends Worker {
  readonly attempts: readonly {
    readonly id: string;
    readonly kind: "attempt" | "callback" | "reaction";
    readonly dag_id: string;
    readonly dag_run_id: string;
    readonly task_id: string | null;
    readonly map_index: number | null;
    readonly try_number: number;
    readonly executor: string;
    readonly queue: string;
    readonly claimed_at: string;
    readonly is_stopping: boolean;
  }[];
}

export const WORKER_ARGUMENT = "name or number of the worker, from `tradewind workers list`";

/** The states of workers that may run something. */
export const LIVE = ["alive", "draining"] as const;

/** With a name: the live worker of that name, else the latest that had it. */
export async function findWorker(client: Client, given: string): Promise<WorkerDetail> {
  const id = /^\d+$/.test(given) ? Number(given) : await idOf(client, given);
  return client.get<WorkerDetail>(path`/workers/${id}`, { what: `cannot show the worker ${given}` });
}

async function idOf(client: Client, name: string): Promise<number> {
  const what = `cannot find the worker ${name}`;
  const read = (state: readonly string[] | undefined) =>
    client.list<Worker>({
      path: "/workers",
      key: "workers",
      what,
      query: { name, state, order_by: "-id" },
      limit: 20,
    });
  const { items: live } = await read(LIVE);
  if (live.length > 1) {
    const ids = live.map(({ hostname, id }) => `${id} on ${hostname}`).join(", ");
    throw usageError(`${live.length} live workers are called ${name}: ${ids}.`, "give the number of one");
  }
  const found = live[0] ?? (await read(undefined)).items[0];
  if (found !== undefined) return found.id;
  throw new CliError("TW_CLI_NO_SUCH_WORKER", `no worker is called ${name}.`, {
    exit: EXIT.notFound,
    remedy: "`tradewind workers list --all` lists them",
  });
}
