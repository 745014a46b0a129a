import type { OpenedDatabase } from "@tradewind/engine";
import type { Check } from "./checks.ts";

/** Open transactions that hold the signal log back; without one there is nothing to say. */
export async function* checkSignals(database: OpenedDatabase["database"]): AsyncGenerator<Check> {
  const { blockerRemedy, describeBlocker, signalBlockers } = await import("@tradewind/engine");
  for (const blocker of await signalBlockers(database)) {
    yield {
      name: "signals",
      result: "warn",
      says: `signals are held back: ${describeBlocker(blocker)}`,
      remedy: blockerRemedy(blocker),
    };
  }
}
