/** The child process of `dags test` and `tasks test`: imports a bundle, runs a DAG or one task in-process, reports and exits. */
import { pathToFileURL } from "node:url";
import { CLASSES_EXPORT, PROGRAM, type Program, TRIGGER, type TriggerProgram } from "@tradewind/sdk/program";
import { DagTestError, runDag, type Triggers } from "@tradewind/testing";
import type { TestReport, TestRequest } from "./protocol.ts";
import { singleTask } from "./single-task.ts";

const channel = process.send?.bind(process);
if (!channel) throw new Error("This file can only be started by `tradewind dags test`.");
// User code shares this process and must not use the channel.
process.send = undefined;
const send = (report: TestReport, sent: () => void = () => {}): void => {
  channel(report, undefined, undefined, sent);
};
process.on("disconnect", () => process.exit(1));

process.once("message", (request: TestRequest) => {
  // The channel must not keep the process alive when the task has nothing left to wait for.
  process.channel?.unref();
  void test(request).then((last) => send(last, () => process.exit(0)));
});

async function test(request: TestRequest): Promise<TestReport> {
  try {
    const exports = (await import(pathToFileURL(request.codePath).href)) as Record<string, unknown>;
    const startedAt = performance.now();
    const { events, ...options } = request.options;
    const program = findProgram(exports, request.dagId);
    const { task } = request;
    const tested = task === undefined ? program : singleTask(program, task.taskId, task.given);
    const run = await runDag(
      { [PROGRAM]: tested },
      {
        ...options,
        triggers: { ...ownTriggers(exports), ...(events as Triggers) },
        onEvent: send,
      },
    );
    const durationMs = performance.now() - startedAt;
    const { state, reason, closedBy, tasks, triggeredRuns } = run;
    const subRuns = run.subRuns.map(({ dagId, taskId, mapIndex, run: { runId, state } }) => ({
      dag_id: dagId,
      dag_run_id: runId,
      task_id: taskId,
      map_index: mapIndex,
      state,
    }));
    return { type: "finished", state, reason, closedBy, durationMs, tasks, triggeredRuns, subRuns };
  } catch (error) {
    const code = error instanceof Error ? (error as { code?: unknown }).code : null;
    return { type: "refused", code: typeof code === "string" ? code : null, message: refusal(error) };
  }
}

const GIVE_EVENT = "give its event: --event '<trigger or task>=<json>'";
const REMEDIES: Partial<Record<DagTestError["code"], string>> = {
  TW_TEST_NO_EVENT: GIVE_EVENT,
  TW_TEST_NEVER_FIRES: `${GIVE_EVENT}, or the signal: --signal '<key>=<json>'`,
  TW_TEST_ENDLESS: "let it end earlier: --until 10m",
};

/** Replaces remedies for test code with remedies for the command line. */
function refusal(error: unknown): string {
  if (!(error instanceof DagTestError)) return error instanceof Error ? error.message : String(error);
  const isApproval = error.code === "TW_TEST_NO_EVENT" && error.problem.includes("`approvals`");
  const remedy = isApproval ? "answer it: --approval '<task>=approve'" : REMEDIES[error.code];
  return remedy === undefined ? error.message : `${error.problem}; ${remedy}`;
}

/** The trigger classes of the bundle, by id. */
function ownTriggers(exports: Record<string, unknown>): Triggers {
  const listed = exports[CLASSES_EXPORT];
  const classes = typeof listed === "function" ? (listed() as unknown[]) : [];
  return Object.fromEntries(
    [...classes, ...Object.values(exports)].flatMap((each) => {
      const program = triggerIn(each);
      return program === null ? [] : [[program.id, each as Triggers[string]]];
    }),
  );
}

function triggerIn(value: unknown): TriggerProgram | null {
  if (typeof value !== "function") return null;
  try {
    return (value as { readonly [TRIGGER]?: TriggerProgram })[TRIGGER] ?? null;
  } catch {
    // Not a valid trigger by itself; a task that waits for it gets an error.
    return null;
  }
}

function findProgram(exports: Record<string, unknown>, dagId: string): Program {
  for (const value of Object.values(exports).flat(2)) {
    if (value === null || (typeof value !== "object" && typeof value !== "function")) continue;
    const program = (value as { [PROGRAM]?: Program })[PROGRAM];
    if (program?.describe().dagId === dagId) return program;
  }
  throw new Error(`The bundle does not contain the DAG ${dagId}.`);
}
