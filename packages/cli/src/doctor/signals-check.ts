import type { OpenedDatabase } from "@tradewind/engine";
import type { Check } from "./checks.ts";

/** Reports open transactions that block the signal log. */
export async function* checkSignals(database: OpenedDatabase["database"]): AsyncGenerator<Check> {
  const { blockerRemedy, describeBlocker, signalBlockers } = await import("@tradewind/engine");
  for (const blocker of await signalBlockers(database)) {
    yield {
      name: "signals",
      result: "warn",
      says: `signals are blocked: ${describeBlocker(blocker)}`,
      remedy: blockerRemedy(blocker),
    };
  }
}
