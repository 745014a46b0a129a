import { type BundleText, bundleText } from "../execute/bundle-text.ts";
import { EngineError } from "../service/errors.ts";
import { loadBundle } from "../store/bundles.ts";
import type { Database } from "../store/database.ts";

/** A bundle from where it is stored for good. */
export async function fetchBundle(database: Database, hash: string): Promise<BundleText> {
  const stored = await loadBundle(database, hash);
  if (stored === undefined) throw new EngineError("BUNDLE_MISSING", `Bundle ${hash} is not in the database.`);
  return bundleText(stored);
}
