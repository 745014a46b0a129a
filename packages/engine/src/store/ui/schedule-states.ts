/** The states of conditions of schedules on signals, for display. */
import type { Json } from "@tradewind/sdk/manifest";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

/** A state has the values of its signals, at any size: a larger one is not read. */
const MOST_CHARACTERS = 50_000;

const STATES = statement(
  "ui-schedule-states",
  `SELECT l.name, CASE WHEN NOT s.is_large THEN l.state END AS state, s.is_large
   FROM signal_listener l CROSS JOIN LATERAL (SELECT coalesce(length(l.state::text), 0) > ${MOST_CHARACTERS} AS is_large) s
   WHERE l.name = ANY($1::text[])`,
);

/** undefined: too large, or the schedule was deleted. */
export async function scheduleStates(
  connection: Connection,
  names: readonly string[],
): Promise<ReadonlyMap<string, Json>> {
  const rows = await connection.rows<{ name: string; state: Json; is_large: boolean }>(STATES, [names]);
  return new Map(rows.filter((row) => !row.is_large).map(({ name, state }) => [name, state]));
}
