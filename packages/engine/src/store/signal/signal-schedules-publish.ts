/**
 * The listener of a DAG whose schedule is a condition on signals, created and changed in the transaction that publishes
 * the DAG. A new listener starts at the current position; one whose condition changed keeps its position and resets its
 * state.
 */
import type {
  DagManifest,
  GatherManifest,
  Json,
  ScheduleManifest,
  SignalCondition,
} from "@tradewind/sdk/manifest";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { canonicalJson } from "../trigger/trigger-fingerprint.ts";
import { startNow } from "./signals-position.ts";

/** `signal_listener.schedule`. */
export interface ScheduleTerms {
  readonly when: SignalCondition;
  readonly route: string | null;
  /** Signals sent before or after these times create no run. */
  readonly start: string | null;
  readonly end: string | null;
  /** For a schedule on assets. */
  readonly gather?: Pick<GatherManifest, "each" | "partitioned">;
}

type SignalLeaf = Extract<SignalCondition, { kind: "signal" }>;

/** The DAGs' rows are locked. A listener of another program under our name is removed. */
const REMOVE = statement(
  "schedule-remove",
  `DELETE FROM signal_listener
   WHERE (dag_id = ANY($1::text[]) AND dag_id <> ALL($2::text[]))
      OR (dag_id IS NULL AND name = ANY(SELECT 'dag:' || d FROM unnest($2::text[]) AS d))`,
);

/** `json` keeps its text, and equal conditions have equal texts. */
const SET = statement(
  "schedule-set",
  `INSERT INTO signal_listener AS l (name, dag_id, schedule, revision, filter, holder, lease_until, tx, signal_id,
     after_version)
   SELECT 'dag:' || u.dag, u.dag, u.schedule, gen_random_uuid(), u.filter, 'schedule', 'infinity', $4::xid8, $5, $6
   FROM unnest($1::text[], $2::json[], $3::json[]) AS u(dag, schedule, filter) ORDER BY u.dag
   ON CONFLICT (name) DO UPDATE SET schedule = excluded.schedule, filter = excluded.filter, revision = excluded.revision,
     state = CASE WHEN (l.schedule->'when')::text = (excluded.schedule->'when')::text THEN l.state END
   WHERE l.schedule::text <> excluded.schedule::text`,
);

/** For all published DAGs, with any schedule. */
export async function setSignalSchedules(tx: Connection, dags: readonly DagManifest[]): Promise<void> {
  if (dags.length === 0) return;
  const listening = dags.flatMap(({ dagId, end, schedule, start }) =>
    schedule.kind === "signal" ? [{ dagId, terms: termsOf(dagId, schedule, { start, end }) }] : [],
  );
  const ids = listening.map(({ dagId }) => dagId);
  await tx.rows(REMOVE, [dags.map(({ dagId }) => dagId), ids]);
  if (listening.length === 0) return;
  const { afterVersion, position } = await startNow(tx);
  await tx.rows(SET, [
    ids,
    listening.map(({ terms }) => canonicalJson(terms as unknown as Json)),
    listening.map(({ terms }) => JSON.stringify(filterOf(terms.when))),
    position.tx,
    position.id,
    afterVersion,
  ]);
}

export function signalLeaves(condition: SignalCondition): SignalLeaf[] {
  if (condition.kind === "signal") return [condition];
  return condition.kind === "task" ? [] : condition.of.flatMap(signalLeaves);
}

function termsOf(
  dagId: string,
  { gather, route, when }: Extract<ScheduleManifest, { kind: "signal" }>,
  { end, start }: Pick<DagManifest, "start" | "end">,
): ScheduleTerms {
  if (gather === undefined) return { when, route, start, end };
  const { each, partitioned } = gather;
  return { when: withTimesOf(dagId, when), route, start, end, gather: { each, partitioned } };
}

/** The DAG's own times are sent under its id. */
function withTimesOf(dagId: string, when: SignalCondition): SignalCondition {
  if (when.kind === "signal") return when.namespace === "schedule" ? { ...when, key: dagId } : when;
  return when.kind === "task" ? when : { ...when, of: when.of.map((each) => withTimesOf(dagId, each)) };
}

/** In the form of a listener's filter, for display. */
function filterOf(when: SignalCondition): Json {
  const leaves = signalLeaves(when);
  const namespaces = new Set(leaves.map(({ namespace }) => namespace));
  const keys = [...new Set(leaves.map(({ key }) => key))];
  return { namespace: namespaces.size === 1 ? [...namespaces][0]! : "*", keys, sender: null };
}
