import type { Connection, Database } from "../../src/store/database/database.ts";
import type { Statement } from "../../src/store/database/statement.ts";

/** The database, with a call before or after the statements of its transactions: what another process does meanwhile. */
export function interleaved(
  db: Database,
  { before, after }: Partial<Record<"before" | "after", (statement: string) => Promise<void>>>,
): Database {
  const transaction = <T>(work: (tx: Connection) => Promise<T>) =>
    db.transaction((tx) =>
      work({
        ...tx,
        rows: async <R>(statement: Statement, values?: readonly unknown[]) => {
          await before?.(statement.name);
          const rows = await tx.rows<R>(statement, values);
          await after?.(statement.name);
          return rows;
        },
      }),
    );
  return { transaction } as Database;
}
