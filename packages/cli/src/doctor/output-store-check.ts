import { existsSync } from "node:fs";
import type { Session } from "../session.ts";
import type { Check } from "./checks.ts";

/** Where large outputs go can be written, read and cleared. The folder of a home that was never made is not made. */
export async function* checkOutputStore(session: Session): AsyncGenerator<Check> {
  const name = "outputs";
  const engine = await import("@tradewind/engine");
  try {
    const config = engine.resolveConfig({ home: session.options.home }, session.host.env);
    if (config.outputStore === "file:" && !existsSync(session.home)) return;
    const place = await engine.probeOutputStore(config);
    if (config.outputStore !== "file:" || config.databaseUrl === undefined)
      yield { name, result: "ok", says: `${place} can be written` };
    else
      yield {
        name,
        result: "warn",
        says: `${place} can be written, and is a folder of this machine alone`,
        remedy: "with several machines, TRADEWIND_OUTPUT_STORE: a shared file:/folder, or s3://bucket/prefix",
      };
  } catch (error) {
    yield {
      name,
      result: "fail",
      says: `the store of large outputs cannot be used: ${error instanceof Error ? error.message : String(error)}`,
      remedy:
        "check TRADEWIND_OUTPUT_STORE, its free space and who may write there; of S3 the AWS_ variables",
    };
  }
}
