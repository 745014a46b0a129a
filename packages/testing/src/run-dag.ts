import type { Dag } from "@tradewind/sdk";
import { PROGRAM, type Program } from "@tradewind/sdk/program";
import { DagTestError } from "./errors.ts";
import { checkOptions } from "./option-check.ts";
import type { RunOptions } from "./options.ts";
import type { RunResult } from "./result.ts";
import { InProcessRun } from "./run/in-process-run.ts";

/**
 * A DAG, or any other export of a bundle that carries a DAG's program.
 * @example const run = (file: RunnableDag) => runDag(file);
 */
export type RunnableDag<Conf = unknown> = Dag<Conf> | { readonly [PROGRAM]: Program };

/**
 * Runs a DAG in this process with the engine's own rules, without a database and on a virtual clock, and resolves when
 * the run has ended.
 * @see docs/guides/testing.md
 *
 * @example
 * ```ts
 * const run = await runDag(sales, { conf: { region: "eu" }, variables: { api_url: "http://localhost" } });
 * expect(run.state).toBe("success");
 * expect(run.outputs["count"]).toBe(3);
 * ```
 */
export async function runDag<Conf>(
  dag: RunnableDag<Conf>,
  options: RunOptions<Conf> = {},
): Promise<RunResult> {
  const program = (dag as { readonly [PROGRAM]?: Program } | null | undefined)?.[PROGRAM];
  if (program === undefined) {
    throw new DagTestError(
      "TW_TEST_NOT_A_DAG",
      "runDag takes a DAG, the value that dag() returned; check the import",
    );
  }
  checkOptions(options);
  return new InProcessRun(program, options).finish();
}
