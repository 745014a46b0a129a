import { beforeAll, describe, expect, it } from "vitest";
import { seedDag, seedRuns } from "../../../test/support/catalogue-seed.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { seedTrigger, seedTriggerer, seedWait, waitRow } from "../../../test/support/trigger-seed.ts";
import { adhoc, type Database, sqlState } from "../../store/database/database.ts";
import { TriggerOutcomeWriter } from "./trigger-outcome-writer.ts";

describe("outcomes on their way to the database", () => {
  let db: Database;
  let runId: number;
  let jobId: number;

  beforeAll(async () => {
    ({ db } = await testDatabase());
    await seedDag(db, "dag");
    await seedDag(db, "scheduled");
    [runId = 0] = await seedRuns(db, "dag", { state: "running" });
    jobId = await seedTriggerer(db);
  });

  it("returns stored outcomes although later ones cannot be stored yet", async () => {
    const fires = await seedTrigger(db, { ownerJob: jobId });
    const attempt = await seedWait(db, { runId, triggerId: fires });
    const schedule = await seedTrigger(db, { ownerJob: jobId, dagId: "scheduled" });
    const desk = new TriggerOutcomeWriter(db);
    desk.fire(fires, { kind: "event", payload: 1, key: null });
    desk.run(schedule, "event__1", 2);
    await db.transaction(async (tx) => {
      // Like a transaction that deletes or publishes the DAG: longer than the lock timeout of a batch.
      await tx.rows(adhoc("SELECT 1 FROM dag WHERE dag_id = 'scheduled' FOR UPDATE"));
      expect(await desk.store(jobId)).toMatchObject({ acknowledged: [fires], lost: [], runs: 0 });
      expect((await waitRow(db, attempt)).fired_at).not.toBeNull();
      expect(desk.size).toBe(1);
      // No outcome is left to return: now the lock timeout is reported.
      await expect(desk.store(jobId)).rejects.toSatisfy((error) => sqlState(error) === "55P03");
    });
    expect(await desk.store(jobId)).toMatchObject({ fired: [], acknowledged: [schedule], runs: 1 });
    expect(desk.size).toBe(0);
  });
});
