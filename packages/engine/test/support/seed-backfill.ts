/** A backfill, created like in the API. */
import {
  backfillDates,
  backfillRange,
  type DueRun,
  listedRun,
  listedSchedule,
} from "../../src/model/index.ts";
import { createBackfill, type NewBackfill } from "../../src/store/backfill/backfills.ts";
import { loadVersion } from "../../src/store/dag/dag-catalogue.ts";
import { adhoc, type Database } from "../../src/store/database/database.ts";

export interface BackfillRequest
  extends Partial<Pick<NewBackfill, "reprocess" | "isReverse" | "maxActive" | "stopOnFailure" | "conf">> {
  readonly dagId: string;
  readonly from: string;
  readonly to: string;
  /** Its dates, as if a timetable had returned them. */
  readonly listed?: readonly DueRun[];
}

/** Like the API, without the validation of the request. */
export async function seedBackfill(db: Database, wish: BackfillRequest): Promise<number> {
  const dag = await db.one<{ version_id: number }>(adhoc("SELECT version_id FROM dag WHERE dag_id = $1"), [
    wish.dagId,
  ]);
  const version = await loadVersion(db, dag?.version_id ?? 0);
  if (!version) throw new Error(`no DAG ${wish.dagId}`);
  const now = new Date();
  const [from, to] = [new Date(wish.from), new Date(wish.to)];
  const { isReverse = false } = wish;
  const request = { from: from.getTime(), to: to.getTime(), now: now.getTime(), isReverse };
  const { schedule, range } = backfillRange(version.manifest, request);
  const { listed } = wish;
  if (schedule.kind === "timetable" && !listed)
    throw new Error(`no dates given for timetable ${schedule.name}`);
  const kept = schedule.kind === "timetable" || listed ? listedSchedule(listed ?? [], isReverse) : schedule;
  const dates = kept.kind === "listed" ? kept.dues.map(listedRun) : [...backfillDates(kept, range)];
  return db.transaction((tx) =>
    createBackfill(tx, {
      dagId: wish.dagId,
      schedule: kept,
      anchor: range.anchor === null ? null : new Date(range.anchor),
      versionId: null,
      from,
      to,
      reprocess: wish.reprocess ?? "none",
      isReverse,
      maxActive: wish.maxActive ?? 10,
      conf: wish.conf ?? null,
      stopOnFailure: wish.stopOnFailure ?? false,
      totalRuns: dates.length,
      firstDate: new Date(dates[0]?.logicalDate ?? 0),
      now,
      createdBy: "test",
    }),
  );
}
