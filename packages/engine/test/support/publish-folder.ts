import { DagProcessor } from "../../src/bundle/dag-processor.ts";
import { planNext } from "../../src/model/calendar/planner.ts";
import { silentLogger } from "../../src/service/logger.ts";
import { adhoc, type Database } from "../../src/store/database/database.ts";

/** Publishes the DAG files of a folder. Throws if one of them is broken. */
export async function publishFolder(database: Database, folder: string): Promise<void> {
  const processor = new DagProcessor({
    database,
    folder,
    logger: silentLogger,
    plan: planNext,
    isPausedAtCreation: false,
    children: 1,
  });
  const report = await processor.runOnce();
  await processor.stop();
  if (report.failed > 0)
    throw new Error(JSON.stringify(await database.rows(adhoc("SELECT * FROM import_error"))));
}
