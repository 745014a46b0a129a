import { existsSync } from "node:fs";
import type { Config } from "@tradewind/engine";
import { processAlive, readStandalone } from "../client/target.ts";
import type { Session } from "../session.ts";
import type { Check } from "./checks.ts";

/**
 * Writes, reads and deletes an object in the store for large outputs: the store of the running standalone of this home, else
 * of this shell. Does not create the folder of a home that does not exist.
 */
export async function* checkOutputStore(session: Session, config: Config): AsyncGenerator<Check> {
  const name = "outputs";
  const running = storeOfStandalone(session.home);
  const outputStore = running ?? config.outputStore;
  if (outputStore === "file:" && !existsSync(session.home)) return;
  if (outputStore !== config.outputStore)
    yield {
      name,
      result: "warn",
      says: `the running standalone uses ${outputStore}, this shell ${config.outputStore}`,
      remedy: "set the same TRADEWIND_OUTPUT_STORE for both; the next check is for the standalone's store",
    };
  const whose = running === undefined ? " (TRADEWIND_OUTPUT_STORE of this shell)" : "";
  try {
    const engine = await import("@tradewind/engine");
    const place = await engine.probeOutputStore({ ...config, outputStore });
    if (outputStore !== "file:" || config.databaseUrl === undefined)
      yield { name, result: "ok", says: `${place} is writable${whose}` };
    else
      yield {
        name,
        result: "warn",
        says: `${place} is writable${whose}, but is a local folder of this machine`,
        remedy:
          "with several machines, set TRADEWIND_OUTPUT_STORE to a shared file:/folder or s3://bucket/prefix",
      };
  } catch (error) {
    yield {
      name,
      result: "fail",
      says: `the store for large outputs, ${outputStore}${whose}, is not usable: ${error instanceof Error ? error.message : String(error)}`,
      remedy: "check TRADEWIND_OUTPUT_STORE, its free space and permissions; for S3 also the AWS_ variables",
    };
  }
}

function storeOfStandalone(home: string): string | undefined {
  const standalone = readStandalone(home);
  return standalone?.pid !== undefined && processAlive(standalone.pid) ? standalone.outputStore : undefined;
}
