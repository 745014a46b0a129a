/** What `dags test` and its child say to each other. The child runs the author's code; the parent only prints. */
import type { RunOptions, RunProgress, TaskResult } from "@tradewind/testing";

export interface TestRequest {
  readonly codePath: string;
  readonly dagId: string;
  readonly options: Pick<RunOptions, "conf" | "variables" | "connections"> & {
    readonly logicalDate?: string;
  };
}

export type TestReport =
  | RunProgress
  | {
      readonly type: "finished";
      readonly state: string;
      readonly reason: string | null;
      readonly durationMs: number;
      readonly tasks: readonly TaskResult[];
    }
  /** The run could not be made. */
  | { readonly type: "refused"; readonly message: string };
