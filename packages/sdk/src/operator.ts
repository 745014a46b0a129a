import type { TaskContext } from "./context.ts";
import type { Control } from "./control.ts";

declare const RESULT: unique symbol;
declare const INPUTS: unique symbol;

/** The inputs of an operator that does not say which it takes. */
export type AnyInputs = Readonly<Record<string, unknown>>;

/**
 * A reusable task: a class with arguments and an `execute` method, put into a DAG with `d.add`.
 *
 * `Args` are given to the constructor, `Result` is the output, `Inputs` (optional) are the outputs of other tasks
 * that it needs, given through the options of `d.add`.
 *
 * @example
 * ```ts
 * class Count extends Operator<{ table: string }, number> {
 *   async execute(ctx: TaskContext) {
 *     const db = await ctx.connection("warehouse");
 *     return countRows(db, this.args.table);
 *   }
 * }
 * const rows = d.add("count", new Count({ table: "sales" }), { retries: 3 }); // Output<number>
 * ```
 */
export abstract class Operator<Args = void, Result = void, Inputs = AnyInputs> {
  declare readonly [RESULT]?: Result;
  declare readonly [INPUTS]?: (inputs: Inputs) => void;

  readonly args: Args;

  constructor(args: Args) {
    this.args = args;
  }

  /** Does the work of one attempt and returns the output, {@link skip} or {@link fail}. */
  abstract execute(ctx: TaskContext, inputs: Inputs): Result | Control | Promise<Result | Control>;
}
