import type { Config } from "@tradewind/engine";
import type { Session } from "../session.ts";
import type { Check } from "./checks.ts";

/** The settings of this shell, or a failed check; then checks that need settings are skipped. */
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
      remedy: "correct or unset it, then run doctor again: database, outputs and port were not checked",
    };
  }
}
