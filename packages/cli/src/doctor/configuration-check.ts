import type { Config } from "@tradewind/engine";
import type { Session } from "../session.ts";
import type { Check } from "./checks.ts";

/** The settings as this shell has them; or what is wrong with them: then nothing that needs them is looked at. */
export async function readConfiguration(session: Session): Promise<Config | Check> {
  const { EngineError, resolveConfig } = await import("@tradewind/engine");
  try {
    return resolveConfig({ home: session.options.home }, session.host.env);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    return {
      name: "configuration",
      result: "fail",
      says: error.message,
      remedy: "correct it or unset it; database, outputs and port are looked at then",
    };
  }
}
