import { APPROVAL_KIND } from "@tradewind/sdk/approval-request";
import { errorText } from "@tradewind/sdk/wording";
import type { RunResult, TaskResult } from "@tradewind/testing";
import { CliError } from "../errors.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { logLine } from "../output/log-line.ts";
import { FrameFilter, SourcePaths } from "../output/source-paths.ts";
import { paintStateNote } from "../output/state.ts";
import { moment, span } from "../output/when.ts";
import type { Session } from "../session.ts";
import type { TestReport, TestRequest } from "./protocol.ts";

const OUTPUT_SHOWN = 200;
const ALL_IN_ONE = "return or throw instead of calling process.exit: in a test, all tasks share one process";

/** Prints the progress of `dags test` or `tasks test` on stderr, and the result at the end. */
export class TestPrinter {
  readonly #session: Session;
  readonly #dagId: string;
  /** Set for `tasks test`. */
  readonly #taskId: string | null;
  readonly #skipsWaits: boolean;
  readonly #hint: (message: string) => string | null;
  /** Tasks that have started and have neither ended nor deferred. */
  readonly #running = new Set<string>();
  readonly #frames = new FrameFilter({ isTest: true });
  readonly #paths: SourcePaths;
  #result: Extract<TestReport, { type: "finished" }> | undefined;
  #refusal: Extract<TestReport, { type: "refused" }> | undefined;

  /** @param hint Returns advice for an error message. */
  constructor(
    session: Session,
    { dagId, options, task }: TestRequest,
    hint: (message: string) => string | null,
  ) {
    this.#session = session;
    this.#dagId = dagId;
    this.#taskId = task?.taskId ?? null;
    this.#skipsWaits = options.clock === "virtual";
    this.#hint = hint;
    this.#paths = SourcePaths.of(session);
  }

  report(report: TestReport): void {
    const { terminal } = this.#session;
    switch (report.type) {
      case "started": {
        this.#running.add(name(report));
        const again = report.tryNumber > 1 ? ` (try ${report.tryNumber})` : "";
        const on = report.resumed ? " resumes" : "";
        this.#session.note(`${terminal.paintNote("cyan", "▶")} ${name(report)}${on}${again}`);
        break;
      }
      case "waiting":
        this.#running.delete(name(report));
        this.#session.note(`${terminal.paintNote("yellow", "…")} ${name(report)} ${this.#waits(report)}`);
        if (report.signal !== null && !this.#skipsWaits)
          this.#session.note(
            `    if no task sends it: --signal '${report.signal}=<json>', or --skip-waits to go on to the timeout`,
          );
        break;
      case "log": {
        const entry = { ...report.fields, event: report.message, level: report.level };
        this.#session.note(`    ${logLine(terminal, entry, "stderr")}`);
        break;
      }
      case "ended":
        this.#running.delete(name(report));
        this.#ended(report);
        break;
      case "signal": {
        const from = report.taskId === null ? "from outside" : `from ${report.taskId}`;
        this.#session.note(
          `${terminal.paintNote("cyan", "≈")} ${report.key}${valueText(report.value)} ${from}`,
        );
        break;
      }
      case "notice":
        this.#session.note(`${terminal.paintNote("yellow", "!")} ${noticeText(report)}`);
        break;
      case "action":
        this.#session.note(`${terminal.paintNote("yellow", "»")} ${actionText(report)}`);
        break;
      case "finished":
        this.#result = report;
        break;
      case "refused":
        this.#refusal = report;
    }
  }

  /** Text printed by user code. */
  output(text: string): void {
    for (const line of text.trimEnd().split("\n"))
      if (this.#frames.isShown(line)) this.#session.note(`    ${this.#paths.inText(line)}`);
  }

  /** Prints the outcome. `exit` is the exit code or signal of the child. */
  async end(exit: number | NodeJS.Signals | null): Promise<ExitCode> {
    const { terminal } = this.#session;
    if (this.#result === undefined) throw this.#noResult(exit);
    const { state, closedBy, durationMs, reason, subRuns, tasks, triggeredRuns } = this.#result;
    if (closedBy === "idle")
      this.#session.note("No task could start, so the run was closed. Send signals with --signal.");
    if (closedBy === "until") this.#session.note("The run was closed after the time of --until.");
    for (const { dagId, runId } of triggeredRuns)
      this.#session.note(`Not started, because this is a test: run ${runId} of ${dagId}.`);
    const [task] = tasks;
    if (this.#taskId !== null && task !== undefined) return this.#endTask(task, durationMs);
    await this.#session.printDone(
      {
        dag_id: this.#dagId,
        state,
        reason,
        closed_by: closedBy,
        duration: durationMs / 1000,
        tasks: tasks.map(taskView),
        triggered_runs: triggeredRuns.map(runView),
        sub_runs: subRuns,
      },
      `${this.#dagId}: ${paintStateNote(terminal, state)} in ${span(durationMs / 1000)}, ${tasks.length} tasks.`,
    );
    return state === "success" ? EXIT.ok : EXIT.failed;
  }

  /** The output of the task is the result, on stdout. */
  async #endTask(task: TaskResult, durationMs: number): Promise<ExitCode> {
    const { error, output, reason, state, taskId } = task;
    const view = {
      dag_id: this.#dagId,
      task_id: taskId,
      state,
      output,
      error,
      reason,
      duration: durationMs / 1000,
    };
    if (this.#session.format !== "table") await this.#session.printObject(view, []);
    else if (output !== undefined) this.#session.terminal.data(JSON.stringify(output, null, 2));
    return state === "success" || state === "skipped" ? EXIT.ok : EXIT.failed;
  }

  #noResult(exit: number | NodeJS.Signals | null): CliError {
    if (this.#refusal === undefined) {
      const how = typeof exit === "number" ? `exit code ${exit}` : `signal ${exit}`;
      const running = [...this.#running];
      const whose = running.length === 0 ? "" : `, while running ${running.join(", ")}`;
      const message = `the process that ran ${this.#dagId} ended with ${how} before the run did${whose}.`;
      return new CliError("TW_CLI_TEST", message, {
        exit: EXIT.failed,
        ...(running.length > 0 && { remedy: ALL_IN_ONE }),
      });
    }
    return new CliError(this.#refusal.code ?? "TW_CLI_TEST", this.#refusal.message, { exit: EXIT.usage });
  }

  #ended(report: Extract<TestReport, { type: "ended" }>): void {
    const { terminal } = this.#session;
    const mark =
      report.state === "success"
        ? terminal.paintNote("green", "✓")
        : report.state === "failed"
          ? terminal.paintNote("red", "✗")
          : "·";
    this.#session.note(
      `${mark} ${name(report)} ${paintStateNote(terminal, report.state)} in ${span(report.durationMs / 1000)}${this.#taskId === null ? outputText(report.output) : ""}${reasonText(report)}`,
    );
    if (report.error) {
      this.#session.note(indent(this.#paths.inText(errorText(report.error))));
      const hint = this.#hint(report.error.message);
      if (hint !== null) this.#session.note(indent(hint));
    }
    if (report.retryAt) this.#session.note(`    retries at ${this.#at(report.retryAt)}`);
  }

  #waits({ trigger, signal, step, until, timeoutAt }: Extract<TestReport, { type: "waiting" }>): string {
    if (trigger === null) return `is called again at ${this.#at(until)}`;
    if (trigger === APPROVAL_KIND) {
      const end = until ?? timeoutAt;
      return `waits for an answer${end === null ? "" : `, until ${this.#at(end)} at the latest`}`;
    }
    const where = step === null ? "" : ` (${step})`;
    if (until !== null) return `waits${where} until ${this.#at(until)}`;
    const limit = timeoutAt === null ? "" : `, at most until ${moment(timeoutAt)}`;
    const what = signal === null ? trigger : `the signal ${signal}`;
    return `waits for ${what}${where}${limit}`;
  }

  #at(iso: string | null): string {
    return `${moment(iso)}${this.#skipsWaits ? ", skipped" : ""}`;
  }
}

/** Uses the API's field names, like all JSON output. */
function taskView({ taskId, mapIndex, history, ...task }: TaskResult) {
  const { state, tries, output, error, reason } = task;
  const view = { task_id: taskId, map_index: mapIndex, state, tries, output, error, reason };
  return { ...view, history: history.map(tryView) };
}

function tryView({ tryNumber, startedMs, endedMs, ...rest }: TaskResult["history"][number]) {
  return { try_number: tryNumber, ...rest, start: startedMs / 1000, end: endedMs / 1000 };
}

function runView({ dagId, runId, conf, logicalDate }: RunResult["triggeredRuns"][number]) {
  return { dag_id: dagId, dag_run_id: runId, conf, logical_date: logicalDate };
}

function name({ taskId, mapIndex }: { taskId: string; mapIndex: number }): string {
  return mapIndex < 0 ? taskId : `${taskId}[${mapIndex}]`;
}

function outputText(output: unknown): string {
  return output === undefined || output === null ? "" : ` →${valueText(output)}`;
}

function valueText(value: unknown): string {
  if (value === null) return "";
  const text = JSON.stringify(value);
  return ` ${text.length > OUTPUT_SHOWN ? `${text.slice(0, OUTPUT_SHOWN)}…` : text}`;
}

/** The reason of a failure is its error message. */
function reasonText({ reason, error }: Extract<TestReport, { type: "ended" }>): string {
  return reason === null || error !== undefined ? "" : ` (${reason})`;
}

const DONE = { start: "starts", restart: "restarts", stop: "stops" } as const;

function actionText({ taskId, action, by }: Extract<TestReport, { type: "action" }>): string {
  return taskId === null ? `the run is closed by ${by}` : `${taskId} ${DONE[action]}, by ${by}`;
}

function noticeText({ action, event, groupId, mapIndex, taskId }: RunResult["notices"][number]): string {
  const place = taskId ?? groupId;
  const of = place === null ? "" : ` of ${name({ taskId: place, mapIndex })}`;
  const to = action.kind === "signal" ? action.key : action.to;
  const sent = action.kind === "signal" ? "delivered to this run only" : "not sent, because this is a test";
  return `${action.kind} ${typeof to === "string" ? to : to.join(", ")}: ${event}${of} (${sent})`;
}

function indent(text: string): string {
  return text
    .split("\n")
    .map((line) => `    ${line}`)
    .join("\n");
}
