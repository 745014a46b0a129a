/** For tests: a separate DAG folder with a processor. */
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { silentLogger } from "../service/logger.ts";
import { adhoc, type Database } from "../store/database/database.ts";
import { DagProcessor, type DagProcessorOptions } from "./dag-processor.ts";

export class FolderFixture {
  readonly path = realpathSync(mkdtempSync(join(tmpdir(), "tradewind-dags-")));

  constructor() {
    onTestFinished(() => rmSync(this.path, { recursive: true, force: true }));
  }

  async write(files: Readonly<Record<string, string>>): Promise<void> {
    for (const [file, text] of Object.entries(files)) {
      const path = join(this.path, file);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, text);
    }
  }

  async remove(file: string): Promise<void> {
    await rm(join(this.path, file), { recursive: true });
  }
}

/** A DAG of one task, whose code is `body`. */
export function dagText(dagId: string, body = "return 1;", options = "{}"): string {
  return `import { dag } from "tradewind";
export default dag("${dagId}", ${options}, (d) => {
  d.task("work", {}, async () => { ${body} });
});
`;
}

export function processorOn(
  database: Database,
  folder: FolderFixture,
  options: Partial<DagProcessorOptions> = {},
): DagProcessor {
  const processor = new DagProcessor({
    database,
    folder: folder.path,
    logger: silentLogger,
    plan: () => null,
    isPausedAtCreation: false,
    ...options,
  });
  onTestFinished(() => processor.stop());
  return processor;
}

/** Version numbers by DAG; negative for stale ones. */
export async function versions(db: Database): Promise<Record<string, number>> {
  const rows = await db.rows<{ dag_id: string; number: number; is_stale: boolean }>(
    adhoc("SELECT d.dag_id, v.number, d.is_stale FROM dag d JOIN dag_version v ON v.id = d.version_id"),
  );
  return Object.fromEntries(rows.map((row) => [row.dag_id, row.is_stale ? -row.number : row.number]));
}

export async function importErrors(db: Database): Promise<Record<string, string>> {
  const rows = await db.rows<{ file: string; message: string }>(
    adhoc("SELECT file, message FROM import_error"),
  );
  return Object.fromEntries(rows.map((row) => [row.file, row.message]));
}
