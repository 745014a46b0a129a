/**
 * The guarantees of an executor as a suite that every implementation passes. It needs no test framework:
 *
 *   for (const { name, run } of executorConformance(open)) it(name, run, 120_000);
 *
 * It observes an installation from outside, over the REST API, and through a witness to which the tasks of its example DAGs
 * report.
 */
import { LOSS_CASES } from "./loss-cases.ts";
import { RUN_CASES } from "./run-cases.ts";
import type { ConformanceCase, ExecutorSubject } from "./subject.ts";
import { Witness } from "./witness.ts";

export { EXAMPLE_DAGS } from "./example-dags.ts";
export type { ConformanceCase, ExecutorSubject } from "./subject.ts";

export interface CaseParts {
  readonly subject: ExecutorSubject;
  readonly witness: Witness;
}

/** `open` is called once per case, and may return the same installation each time. */
export function executorConformance(open: () => Promise<ExecutorSubject>): ConformanceCase[] {
  return Object.entries({ ...RUN_CASES, ...LOSS_CASES }).map(([name, test]) => ({
    name,
    run: async () => {
      const subject = await open();
      const witness = await Witness.start(subject.host);
      try {
        await test({ subject, witness });
      } finally {
        await witness.close();
      }
    },
  }));
}
