import type { TestProject } from "vitest/node";
import { openSharedPostgres } from "./shared-postgres.ts";

declare module "vitest" {
  export interface ProvidedContext {
    readonly testPostgres: { readonly adminUrl: string; readonly template: string };
  }
}

/** Vitest runs this once, before the first test file; what it returns, after the last. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const shared = await openSharedPostgres();
  project.provide("testPostgres", { adminUrl: shared.adminUrl, template: shared.template });
  return () => shared.stop();
}
