import { existsSync } from "node:fs";
import type { Config } from "@tradewind/engine";
import { processAlive, readStandalone } from "../client/target.ts";
import type { Session } from "../session.ts";
import type { Check } from "./checks.ts";

/**
 * Where large outputs go can be written, read and cleared: of the standalone that runs on this home, else as this shell
 * has it. The folder of a home that was never made is not made.
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
      says: `the standalone that runs puts them into ${outputStore}, and this shell says ${config.outputStore}`,
      remedy: "give both the same TRADEWIND_OUTPUT_STORE; what follows is that of the standalone",
    };
  const whose = running === undefined ? ", as this shell has TRADEWIND_OUTPUT_STORE" : "";
  try {
    const engine = await import("@tradewind/engine");
    const place = await engine.probeOutputStore({ ...config, outputStore });
    if (outputStore !== "file:" || config.databaseUrl === undefined)
      yield { name, result: "ok", says: `${place} can be written${whose}` };
    else
      yield {
        name,
        result: "warn",
        says: `${place} can be written${whose}, and is a folder of this machine alone`,
        remedy: "with several machines, TRADEWIND_OUTPUT_STORE: a shared file:/folder, or s3://bucket/prefix",
      };
  } catch (error) {
    yield {
      name,
      result: "fail",
      says: `the store of large outputs, ${outputStore}${whose}, cannot be used: ${error instanceof Error ? error.message : String(error)}`,
      remedy:
        "check TRADEWIND_OUTPUT_STORE, its free space and who may write there; of S3 the AWS_ variables",
    };
  }
}

function storeOfStandalone(home: string): string | undefined {
  const standalone = readStandalone(home);
  return standalone?.pid !== undefined && processAlive(standalone.pid) ? standalone.outputStore : undefined;
}
