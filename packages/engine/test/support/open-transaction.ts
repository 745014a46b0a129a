import type { Database, Transaction } from "../../src/store/database/database.ts";

/** A transaction that has done its work and stays open until `commit`. */
export async function openTransaction(db: Database, work: (tx: Transaction) => Promise<unknown>) {
  const began = Promise.withResolvers<void>();
  const done = Promise.withResolvers<void>();
  const ended = db.transaction(async (tx) => {
    await work(tx);
    began.resolve();
    await done.promise;
  });
  await Promise.race([began.promise, ended]);
  return {
    commit: async () => {
      done.resolve();
      await ended;
    },
  };
}
