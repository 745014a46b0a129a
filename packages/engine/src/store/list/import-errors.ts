/** DAG files that could not be loaded, and why. */
import type { Connection } from "../database/database.ts";
import { Conditions, first, type Listed, list, type Page } from "../page/query.ts";

export interface ImportErrorRow {
  readonly id: number;
  readonly file: string;
  readonly message: string;
  readonly created_at: Date;
}

export const IMPORT_ERROR_ORDER = {
  id: "e.id",
  import_error_id: "e.id",
  timestamp: "e.created_at",
  filename: "e.file",
  stacktrace: "e.message",
  // All files are in one DAG folder.
  bundle_name: "NULL::text",
} as const;

export function listImportErrors(
  connection: Connection,
  filter: { file?: string; filePattern?: string; filePrefix?: string; nothing?: boolean },
  page: Page,
): Promise<Listed<ImportErrorRow>> {
  return list(connection, {
    columns: COLUMNS,
    from: "import_error e",
    where: new Conditions()
      .equals("e.file", filter.file)
      .matches("e.file", filter.filePattern)
      .startsWith("e.file", filter.filePrefix)
      .nothingIf(filter.nothing),
    order: IMPORT_ERROR_ORDER,
    tiebreak: "e.id",
    page,
  });
}

export function findImportError(connection: Connection, id: number): Promise<ImportErrorRow | undefined> {
  return first(connection, {
    columns: COLUMNS,
    from: "import_error e",
    where: new Conditions().equals("e.id", id),
  });
}

const COLUMNS = "e.id, e.file, e.message, e.created_at";
