/**
 * The guarantees of a signal service as a suite that every implementation passes. It needs no test framework:
 *
 *   for (const { name, run } of signalServiceConformance(make)) it(name, run);
 */
import { LISTENER_CASES } from "./listener-cases.ts";
import { LOG_CASES } from "./log-cases.ts";
import type { ConformanceCase, ConformanceSubject } from "./subject.ts";

export { Collector, type ConformanceCase, type ConformanceSubject } from "./subject.ts";

/** `make` is called once per case. */
export function signalServiceConformance(make: () => Promise<ConformanceSubject>): ConformanceCase[] {
  return Object.entries({ ...LOG_CASES, ...LISTENER_CASES }).map(([name, test]) => ({
    name,
    run: async () => {
      const subject = await make();
      try {
        await test(subject);
      } finally {
        await subject.close();
      }
    },
  }));
}
