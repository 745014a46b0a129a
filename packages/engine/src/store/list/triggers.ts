/** Triggers as the API lists them: kind, owner, and number of waits. */
import type { Json } from "@tradewind/sdk/manifest";
import { ALL_KIND } from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { COUNTED_EXACTLY, Conditions, first, type ListedPage, listPage, type Page } from "../page/query.ts";

/**
 * "timed": fires at its time without a triggerer; "hot": a live triggerer runs it; "cold": no triggerer has to run it
 * now; "unowned": a triggerer should run it and none does.
 */
export const TRIGGER_STATES = ["hot", "cold", "timed", "unowned"] as const;
export type TriggerState = (typeof TRIGGER_STATES)[number];

export interface TriggerRow {
  readonly id: number;
  readonly kind: string;
  readonly args: Json;
  readonly fired: readonly number[] | null;
  readonly bundle_hash: string | null;
  readonly queue: string;
  readonly replicas: number;
  readonly dag_id: string | null;
  readonly state: TriggerState;
  /** null: never. */
  readonly wake_at: Date | null;
  readonly created_at: Date;
  readonly claimed_at: Date | null;
  readonly polled_at: Date | null;
  readonly owner_job: number | null;
  readonly owner_host: string | null;
  readonly owner_alive: boolean;
  readonly standby_job: number | null;
  readonly standby_host: string | null;
  readonly standby_alive: boolean;
  readonly waiting: number;
}

export interface TriggerFilter {
  readonly kinds?: readonly string[];
  readonly queues?: readonly string[];
  readonly states?: readonly TriggerState[];
  /** The trigger of this DAG's schedule. */
  readonly dagId?: string;
  /** This job is its owner or standby. */
  readonly triggererId?: number;
}

export const TRIGGER_ORDER = {
  id: "g.id",
  kind: "g.kind",
  queue: "g.queue",
  dag_id: "g.dag_id",
  created_at: "g.created_at",
  wake_at: "g.wake_at",
  last_polled_at: "g.polled_at",
  triggerer_id: "g.owner_job",
} as const;

export function listTriggers(
  connection: Connection,
  filter: TriggerFilter,
  page: Page,
): Promise<ListedPage<TriggerRow>> {
  return listPage(connection, {
    columns: COLUMNS,
    from: FROM,
    where: conditions(filter),
    order: TRIGGER_ORDER,
    tiebreak: "g.id",
    page,
    countUpTo: COUNTED_EXACTLY,
  });
}

export function findTrigger(connection: Connection, id: number): Promise<TriggerRow | undefined> {
  return first(connection, { columns: COLUMNS, from: FROM, where: new Conditions().equals("g.id", id) });
}

/** SQL: whether the job of this alias has a valid lease; false without a job. */
export const alive = (job: string) =>
  `COALESCE(${job}.state = 'running' AND ${job}.lease_until > now(), false)`;

/** Before its time, or the schedule of a DAG that creates no runs now: no triggerer claims it. */
const RESTS = `(g.wake_at > now()
  OR EXISTS (SELECT 1 FROM dag p WHERE p.dag_id = g.dag_id AND (p.is_paused OR p.is_stale)))`;

/** For a trigger `g` and its owner `j`. A dead owner counts as none: any triggerer may take the trigger over. */
export const TRIGGER_STATE = `CASE WHEN g.timed IS NOT NULL THEN 'timed' WHEN ${alive("j")} THEN 'hot'
  WHEN ${RESTS} THEN 'cold' ELSE 'unowned' END`;

/**
 * For a wait for all: the positions of the members that have fired, as reported by its live owner `j`. Without an owner
 * there are none: the next one observes all members again.
 */
export const FIRED = `CASE WHEN g.kind = '${ALL_KIND}' AND ${alive("j")} THEN j.facts->'fired'->(g.id::text) END AS fired`;

/** The driver cannot represent 'infinity'. */
export const WAKE_AT = "NULLIF(g.wake_at, 'infinity') AS wake_at";

/** Always true, in the form of two partial indexes: they find a few triggers among a million timed ones. */
const UNTIMED = "g.timed IS NULL AND (g.owner_job IS NULL OR g.owner_job IS NOT NULL)";

/** The same states as conditions. */
const IS_STATE: Readonly<Record<TriggerState, string>> = {
  timed: "g.timed IS NOT NULL",
  hot: `(g.timed IS NULL AND g.owner_job IS NOT NULL AND ${alive("j")})`,
  cold: `(${UNTIMED} AND NOT ${alive("j")} AND ${RESTS})`,
  unowned: `(${UNTIMED} AND NOT ${alive("j")} AND NOT ${RESTS})`,
};

const COLUMNS = `g.id, g.kind, g.args, g.bundle_hash, g.queue, g.replicas, g.dag_id, ${TRIGGER_STATE} AS state, ${WAKE_AT}, ${FIRED},
  g.created_at, g.claimed_at, g.polled_at, g.owner_job, j.hostname AS owner_host, ${alive("j")} AS owner_alive,
  g.standby_job, s.hostname AS standby_host, ${alive("s")} AS standby_alive,
  (SELECT count(*)::int8 FROM deferral w WHERE w.waits_on = g.id) AS waiting`;

const FROM = "trigger g LEFT JOIN job j ON j.id = g.owner_job LEFT JOIN job s ON s.id = g.standby_job";

function conditions(filter: TriggerFilter): Conditions {
  const where = new Conditions()
    .oneOf("g.kind", filter.kinds)
    .oneOf("g.queue", filter.queues)
    .equals("g.dag_id", filter.dagId);
  const { states, triggererId } = filter;
  if (states !== undefined && states.length > 0)
    where.raw(`(${states.map((state) => IS_STATE[state]).join(" OR ")})`);
  if (triggererId !== undefined) {
    const job = where.bind(triggererId);
    where.raw(`(g.owner_job = ${job} OR g.standby_job = ${job})`);
  }
  return where;
}
