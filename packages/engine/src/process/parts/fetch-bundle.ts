import { BundleCache } from "../../code/bundle-cache.ts";
import { type BundleText, bundleText } from "../../code/bundle-text.ts";
import { EngineError } from "../../service/errors.ts";
import { loadBundle, loadBundledFile } from "../../store/dag/bundles.ts";
import type { Database } from "../../store/database/database.ts";
import type { ServiceParts } from "./service-parts.ts";

/** Packages that bundles require are resolved from the DAG folder, or from the current folder of a process without one. */
export function createBundleCache({ config, database, home }: ServiceParts): BundleCache {
  return new BundleCache(home.bundles, (hash) => fetchBundle(database, hash), [config.dags, process.cwd()]);
}

/** A bundle from the database. */
export async function fetchBundle(database: Database, hash: string): Promise<BundleText> {
  const stored = await loadBundle(database, hash);
  if (stored === undefined) throw new EngineError("BUNDLE_MISSING", `Bundle ${hash} is not in the database.`);
  return { ...bundleText(stored), file: (file) => fetchFile(database, file) };
}

async function fetchFile(database: Database, hash: string): Promise<Uint8Array> {
  const content = await loadBundledFile(database, hash);
  if (content === undefined)
    throw new EngineError("BUNDLE_MISSING", `File ${hash} of a bundle is not in the database.`);
  return content;
}
