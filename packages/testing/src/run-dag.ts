import type { Dag } from "@tradewind/sdk";
import { PROGRAM, type Program } from "@tradewind/sdk/program";
import { DagTestError } from "./errors.ts";
import { checkOptions } from "./option-check.ts";
import type { RunOptions } from "./options.ts";
import type { RunResult } from "./result.ts";
import { InProcessRun } from "./run/in-process-run.ts";

/** Anything that carries a DAG's program: a `Dag`, or what a bundle exports. */
export type RunnableDag<Conf = unknown> = Dag<Conf> | { readonly [PROGRAM]: Program };

/**
 * Runs a DAG in this process: with the engine's own rules, without a database, on a virtual clock, so that no retry is
 * waited for. Resolves when the run has ended, whether it succeeded or failed. One that would go on, because signals or
 * times may still start its tasks, is closed when nothing is left to happen, and after `until` at the latest.
 *
 * @example
 * ```ts
 * const run = await runDag(sales, { conf: { region: "eu" }, variables: { api_url: "http://localhost" } });
 * expect(run.state).toBe("success");
 * expect(run.outputs["count"]).toBe(3);
 * expect(run.task("load").tries).toBe(2);
 *
 * const driven = await runDag(online, { signals: [{ key: "clicks.hour", value: 7, after: "1h" }], until: "1d" });
 * expect(driven.task("train").history.map(({ output }) => output)).toEqual([7]);
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
