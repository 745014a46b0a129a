import { existsSync } from "node:fs";
import type { Config } from "@tradewind/engine";
import { processAlive, readStandalone } from "../client/target.ts";
import type { Session } from "../session.ts";
import type { Check } from "./checks.ts";

interface Store {
  /** The name of the check. */
  readonly name: string;
  readonly setting: "outputStore" | "logStore";
  readonly variable: string;
  readonly what: string;
  /** Writes, reads and deletes something; returns where. */
  readonly probe: (engine: typeof import("@tradewind/engine"), config: Config) => Promise<string>;
}

const STORES: readonly Store[] = [
  {
    name: "outputs",
    setting: "outputStore",
    variable: "TRADEWIND_OUTPUT_STORE",
    what: "store for large outputs",
    probe: (engine, config) => engine.probeOutputStore(config),
  },
  {
    name: "logs",
    setting: "logStore",
    variable: "TRADEWIND_LOG_STORE",
    what: "store for logs",
    probe: (engine, config) => engine.probeLogStore(config),
  },
];

/**
 * Writes, reads and deletes in the stores for large outputs and logs: those of the running standalone of this home, else of
 * this shell. Does not create the folder of a home that does not exist.
 */
export async function* checkStores(session: Session, config: Config): AsyncGenerator<Check> {
  for (const store of STORES) yield* checkStore(session, config, store);
}

async function* checkStore(
  session: Session,
  config: Config,
  { name, probe, setting, variable, what }: Store,
): AsyncGenerator<Check> {
  const running = ofStandalone(session.home, setting);
  const location = running ?? config[setting];
  if (location === "file:" && !existsSync(session.home)) return;
  if (location !== config[setting])
    yield {
      name,
      result: "warn",
      says: `the running standalone uses ${location}, this shell ${config[setting]}`,
      remedy: `set the same ${variable} for both; the next check is for the standalone's store`,
    };
  const whose = running === undefined ? ` (${variable} of this shell)` : "";
  try {
    const engine = await import("@tradewind/engine");
    const place = await probe(engine, { ...config, [setting]: location });
    if (location !== "file:" || config.databaseUrl === undefined)
      yield { name, result: "ok", says: `${place} is writable${whose}` };
    else
      yield {
        name,
        result: "warn",
        says: `${place} is writable${whose}, but is a local folder of this machine`,
        remedy: `with several machines, set ${variable} to a shared file:/folder or s3://bucket/prefix`,
      };
  } catch (error) {
    yield {
      name,
      result: "fail",
      says: `the ${what}, ${location}${whose}, is not usable: ${error instanceof Error ? error.message : String(error)}`,
      remedy: `check ${variable}, its free space and permissions; for S3 also the AWS_ variables`,
    };
  }
}

function ofStandalone(home: string, setting: Store["setting"]): string | undefined {
  const standalone = readStandalone(home);
  return standalone?.pid !== undefined && processAlive(standalone.pid) ? standalone[setting] : undefined;
}
