import { expect, it } from "vitest";
import { seedDag, seedJob, seedRuns } from "../../../test/support/catalogue-seed.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc } from "../database/database.ts";
import { expireDeadJobs, renewJob } from "./job-lease.ts";

it("renews and ends a lease while open transactions reference the job", async () => {
  const { db } = await testDatabase();
  const living = await seedJob(db);
  const lapsed = await seedJob(db, 0);
  await seedDag(db, "a");
  await db.transaction(async (tx) => {
    const [run] = await seedRuns(db, "a");
    const refer =
      "INSERT INTO callback (id, dag_run_id, event, owner_job) VALUES (gen_random_uuid(), $1, 'failure', $2)";
    for (const job of [living, lapsed]) await tx.rows(adhoc(refer), [run, job]);
    expect(await renewJob(db, living, 60_000)).toMatchObject({ wasHeld: true });
    expect((await expireDeadJobs(db)).map((job) => job.id)).toEqual([lapsed]);
  });
});
