import { EngineError } from "../service/errors.ts";
import { loadBundle } from "../store/dag-catalogue.ts";
import type { Database } from "../store/database.ts";

/** A bundle from where it is stored for good. */
export async function fetchBundle(database: Database, hash: string): Promise<string> {
  const code = await loadBundle(database, hash);
  if (code === undefined) throw new EngineError("BUNDLE_MISSING", `Bundle ${hash} is not in the database.`);
  return code;
}
