/** Messages between `dags test` or `tasks test` and the child. The child runs user code; the parent only prints. */
import type { RunOptions, RunProgress, RunResult, TaskResult } from "@tradewind/testing";
import type { GivenInputs } from "./single-task.ts";

export interface TestRequest {
  readonly codePath: string;
  readonly dagId: string;
  /** For `tasks test`: run only this task, with these inputs. */
  readonly task?: { readonly taskId: string; readonly given: GivenInputs };
  readonly options: Pick<
    RunOptions,
    "clock" | "conf" | "variables" | "connections" | "signals" | "until" | "approvals"
  > & {
    readonly logicalDate: string | null;
    /** By trigger id, by task, or by task and step. */
    readonly events: Readonly<Record<string, unknown>>;
  };
}

export type TestReport =
  | RunProgress
  | {
      readonly type: "finished";
      readonly state: string;
      readonly reason: string | null;
      readonly closedBy: string | null;
      readonly durationMs: number;
      readonly tasks: readonly TaskResult[];
      readonly triggeredRuns: RunResult["triggeredRuns"];
      readonly subRuns: readonly {
        readonly dag_id: string;
        readonly dag_run_id: string;
        readonly task_id: string;
        readonly map_index: number;
        readonly state: string;
      }[];
    }
  /** The run could not be created. */
  | { readonly type: "refused"; readonly code: string | null; readonly message: string };
