import type { TaskResult } from "@tradewind/testing";
import { EXIT, type ExitCode } from "../exit-code.ts";
import { logLine } from "../output/log-line.ts";
import { paintStateNote } from "../output/state.ts";
import { span } from "../output/when.ts";
import type { Session } from "../session.ts";
import type { TestReport } from "./protocol.ts";

const OUTPUT_SHOWN = 200;

/** The progress of a `dags test`, task by task, on stderr; the result at its end. */
export class TestPrinter {
  readonly #session: Session;
  readonly #dagId: string;
  #result: Extract<TestReport, { type: "finished" }> | undefined;
  #refusal: string | undefined;

  constructor(session: Session, dagId: string) {
    this.#session = session;
    this.#dagId = dagId;
  }

  report(report: TestReport): void {
    const { terminal } = this.#session;
    switch (report.type) {
      case "started": {
        const again = report.tryNumber > 1 ? ` (try ${report.tryNumber})` : "";
        this.#session.note(`${terminal.paintNote("cyan", "▶")} ${name(report)}${again}`);
        break;
      }
      case "log": {
        const entry = { ...report.fields, event: report.message, level: report.level };
        this.#session.note(`    ${logLine(terminal, entry, "stderr")}`);
        break;
      }
      case "ended":
        this.#ended(report);
        break;
      case "finished":
        this.#result = report;
        break;
      case "refused":
        this.#refusal = report.message;
    }
  }

  /** What the author's code printed by itself. */
  output(text: string): void {
    for (const line of text.trimEnd().split("\n")) this.#session.note(`    ${line}`);
  }

  /** Says how it ended; `exit` is how the child did. */
  async end(exit: number | NodeJS.Signals | null): Promise<ExitCode> {
    const { terminal } = this.#session;
    if (this.#result === undefined) {
      terminal.note(
        `${terminal.paintNote("red", "error:")} ${this.#refusal ?? `the process that ran ${this.#dagId} ended before the run did (${exit}).`}`,
      );
      return this.#refusal === undefined ? EXIT.failed : EXIT.usage;
    }
    const { state, durationMs, reason, tasks } = this.#result;
    await this.#session.printDone(
      { dag_id: this.#dagId, state, reason, duration: durationMs / 1000, tasks: tasks.map(taskView) },
      `${this.#dagId}: ${paintStateNote(terminal, state)} in ${span(durationMs / 1000)}, ${tasks.length} tasks.`,
    );
    return state === "success" ? EXIT.ok : EXIT.failed;
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
      `${mark} ${name(report)} ${paintStateNote(terminal, report.state)} in ${span(report.durationMs / 1000)}${outputText(report.output)}`,
    );
    if (report.error)
      this.#session.note(indent(report.error.stack ?? `${report.error.name}: ${report.error.message}`));
  }
}

/** In the API's spelling, as everywhere in JSON output. */
function taskView({ taskId, mapIndex, state, tries, output, error, reason }: TaskResult) {
  return { task_id: taskId, map_index: mapIndex, state, tries, output, error, reason };
}

function name({ taskId, mapIndex }: { taskId: string; mapIndex: number }): string {
  return mapIndex < 0 ? taskId : `${taskId}[${mapIndex}]`;
}

function outputText(output: unknown): string {
  if (output === undefined || output === null) return "";
  const text = JSON.stringify(output);
  return ` → ${text.length > OUTPUT_SHOWN ? `${text.slice(0, OUTPUT_SHOWN)}…` : text}`;
}

function indent(text: string): string {
  return text
    .split("\n")
    .map((line) => `    ${line}`)
    .join("\n");
}
