/** How long the lists are that the maps of a run run over. Written in the batch of the run's owner, and nowhere else. */
import type { MapChanges } from "../model/index.ts";
import { type Call, type Connection, call } from "./database.ts";
import { statement } from "./statement.ts";

export interface LoadedExpansion {
  readonly dag_run_id: number;
  readonly map_id: string;
  readonly parent: number;
  readonly base: number;
  readonly length: number;
}

/** What the maps of one run have come to. */
export interface MapWrite extends MapChanges {
  readonly runId: number;
}

const LOAD = statement(
  "maps-load",
  "SELECT dag_run_id, map_id, parent, base, length FROM map_expansion WHERE dag_run_id = ANY($1)",
);

/** What is made in their place counts its tries from 1 again: it must not find what these have done in theirs. */
const DROP = statement(
  "maps-drop-instances",
  `WITH forgotten AS (
     DELETE FROM xcom x USING unnest($1::bigint[], $2::text[], $3::int[]) AS u(run, task, map)
     WHERE x.dag_run_id = u.run AND x.task_id = u.task AND x.map_index = u.map
   ), steps AS (
     DELETE FROM journal j USING unnest($1::bigint[], $2::text[], $3::int[]) AS u(run, task, map)
     WHERE j.dag_run_id = u.run AND j.task_id = u.task AND j.map_index = u.map
   ), waits AS (
     DELETE FROM deferral d USING unnest($1::bigint[], $2::text[], $3::int[]) AS u(run, task, map)
     WHERE d.dag_run_id = u.run AND d.task_id = u.task AND d.map_index = u.map
   )
   DELETE FROM task_instance t USING unnest($1::bigint[], $2::text[], $3::int[]) AS u(run, task, map)
   WHERE t.dag_run_id = u.run AND t.task_id = u.task AND t.map_index = u.map`,
);

const CLOSE = statement(
  "maps-close",
  `DELETE FROM map_expansion m USING unnest($1::bigint[], $2::text[], $3::int[]) AS u(run, map, parent)
   WHERE m.dag_run_id = u.run AND m.map_id = u.map AND m.parent = u.parent`,
);

const OPEN = statement(
  "maps-open",
  `INSERT INTO map_expansion (dag_run_id, map_id, parent, base, length)
   SELECT * FROM unnest($1::bigint[], $2::text[], $3::int[], $4::int[], $5::int[])`,
);

export function loadExpansions(db: Connection, runIds: readonly number[]): Promise<LoadedExpansion[]> {
  return db.rows<LoadedExpansion>(LOAD, [runIds]);
}

/** Before the instances: what is dropped may be made again. */
export function mapCalls(writes: readonly MapWrite[]): Call[] {
  const calls: Call[] = [];
  const dropped = writes.flatMap((write) => write.dropped.map((each) => ({ runId: write.runId, ...each })));
  const closed = writes.flatMap((write) => write.closed.map((each) => ({ runId: write.runId, ...each })));
  const opened = writes.flatMap((write) => write.opened.map((each) => ({ runId: write.runId, ...each })));
  if (dropped.length > 0)
    calls.push(
      call(
        DROP,
        dropped.map(({ runId }) => runId),
        dropped.map(({ taskId }) => taskId),
        dropped.map(({ mapIndex }) => mapIndex),
      ),
    );
  if (closed.length > 0)
    calls.push(
      call(
        CLOSE,
        closed.map(({ runId }) => runId),
        closed.map(({ mapId }) => mapId),
        closed.map(({ parent }) => parent),
      ),
    );
  if (opened.length > 0)
    calls.push(
      call(
        OPEN,
        opened.map(({ runId }) => runId),
        opened.map(({ mapId }) => mapId),
        opened.map(({ parent }) => parent),
        opened.map(({ base }) => base),
        opened.map(({ length }) => length),
      ),
    );
  return calls;
}
