/**
 * Asset events. A database trigger writes an event with its signal (tw_store_asset_event); events never change. Crash
 * before the commit: neither exists. Crash after it, or a lost reply: both exist, and an external sender finds the
 * signal by its client and number (signals.ts).
 */
import type { Json } from "@tradewind/sdk/manifest";
import { ASSETS } from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { sendSignals } from "../signal/signals.ts";

export interface AssetEventRow {
  readonly id: number;
  readonly asset_id: number;
  readonly uri: string;
  readonly group_name: string;
  readonly payload: Json;
  readonly partition_key: string | null;
  readonly alias: string | null;
  readonly source_dag_id: string | null;
  readonly source_run_id: string | null;
  readonly source_task_id: string | null;
  readonly source_map_index: number | null;
  readonly sender: string;
  readonly created_at: Date;
}

export const EVENT_COLUMNS = `e.id, e.asset_id, a.uri, a.group_name, e.payload, e.partition_key, e.alias, e.source_dag_id,
   e.source_run_id, e.source_task_id, e.source_map_index, e.sender, e.created_at`;

const READ = statement(
  "asset-event-read",
  `SELECT ${EVENT_COLUMNS} FROM asset_event e JOIN asset a ON a.id = e.asset_id
   WHERE e.id = ANY($1::bigint[]) ORDER BY e.id`,
);

/** The events with these ids that exist. */
export async function readEvents(db: Connection, ids: readonly number[]): Promise<AssetEventRow[]> {
  return ids.length === 0 ? [] : db.rows<AssetEventRow>(READ, [ids]);
}

/**
 * Records an event of an asset that no task produced. Returns the event's id. Call it late in the transaction, as every
 * function that sends signals.
 */
export async function recordEvent(
  tx: Connection,
  {
    partition,
    payload,
    sender,
    uri,
  }: { uri: string; payload: Json; partition: string | null; sender: string },
): Promise<number> {
  const value = { payload, partition, alias: null, source: null };
  const [sent] = await sendSignals(tx, [{ namespace: ASSETS, key: uri, value, sender }]);
  return sent!.id;
}
