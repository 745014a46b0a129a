/**
 * `dags test` and `tasks test`: bundle the file as the DAG processor does, then run the DAG in a child process with the
 * environment of a task, so a test behaves like a run. User code never runs in the command's own process. Its prints go to
 * stderr; stdout is for the result.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { DagManifest } from "@tradewind/sdk/manifest";
import { EXIT, type ExitCode } from "../exit-code.ts";
import type { JsonObject } from "../input/values.ts";
import type { Session } from "../session.ts";
import { checkConf } from "./check-conf.ts";
import { findTestDag } from "./find-dag.ts";
import { findTask, givenInputs, type InputOptions } from "./given-inputs.ts";
import { TestPrinter } from "./printer.ts";
import type { TestReport, TestRequest } from "./protocol.ts";
import { writeBundle } from "./write-bundle.ts";

export interface TestOptions {
  readonly what: string;
  readonly dags?: string | undefined;
  readonly dag?: string | undefined;
  readonly conf?: JsonObject | undefined;
  readonly logicalDate?: string | undefined;
  readonly variables?: TestRequest["options"]["variables"];
  readonly connections?: TestRequest["options"]["connections"];
  readonly events?: TestRequest["options"]["events"];
  readonly signals?: TestRequest["options"]["signals"];
  readonly approvals?: TestRequest["options"]["approvals"];
  /** Milliseconds. */
  readonly until?: number | undefined;
  readonly skipWaits?: boolean | undefined;
}

/** `tasks test`: one task, with its inputs given. */
export interface TaskTestOptions extends TestOptions {
  readonly taskId: string;
  readonly given: InputOptions;
}

export function testTask(session: Session, options: TaskTestOptions): Promise<ExitCode> {
  return test(session, options, (manifest) => {
    const task = findTask(manifest, options.taskId);
    return { taskId: task.taskId, given: givenInputs(manifest, task, options.given) };
  });
}

export function testDag(session: Session, options: TestOptions): Promise<ExitCode> {
  return test(session, options, () => undefined);
}

async function test(
  session: Session,
  options: TestOptions,
  taskOf: (manifest: DagManifest) => TestRequest["task"],
): Promise<ExitCode> {
  const outFolder = await mkdtemp(join(tmpdir(), "tradewind-test-"));
  try {
    const found = await findTestDag(session, options, outFolder);
    // No logical date, as for a run created by `dags trigger`.
    const { approvals, conf = {}, connections, events = {}, logicalDate = null } = options;
    const { signals, until, variables } = options;
    const task = taskOf(found.manifest);
    await checkConf(found.manifest, conf);
    const codePath = await writeBundle(found.bundle, found.folder, outFolder);
    const clock = options.skipWaits ? "virtual" : "real";
    return await runChild(session, {
      codePath,
      dagId: found.manifest.dagId,
      ...(task && { task }),
      options: { approvals, clock, conf, connections, events, logicalDate, signals, until, variables },
    });
  } finally {
    await rm(outFolder, { recursive: true, force: true });
  }
}

async function runChild(session: Session, request: TestRequest): Promise<ExitCode> {
  const { missingVariableHint, userEnvironment, withheldNames, withHint } = await import("@tradewind/engine");
  const env = userEnvironment(session.host.env);
  const withheld = withheldNames(session.host.env);
  const printer = new TestPrinter(session, request, (message) =>
    missingVariableHint(message, withheld, { set: "in this shell" }),
  );
  const hinted = (report: TestReport): TestReport => {
    if (report.type === "refused") return withHint(report, request.codePath);
    return report.type === "ended" && report.error
      ? { ...report, error: withHint(report.error, request.codePath) }
      : report;
  };
  const child = fork(fileURLToPath(new URL(`./child${extname(import.meta.url)}`, import.meta.url)), {
    env,
    execArgv: [...process.execArgv, "--enable-source-maps"],
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.setEncoding("utf8").on("data", (text: string) => printer.output(text));
  }
  child.on("message", (report: TestReport) => printer.report(hinted(report)));
  const closed = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  child.send(request);
  return session.interruptible(async (signal) => {
    signal.addEventListener("abort", () => child.kill("SIGTERM"), { once: true });
    const [code, killedBy] = await closed;
    if (signal.aborted) {
      session.terminal.note("Interrupted.");
      return EXIT.interrupted;
    }
    return printer.end(killedBy ?? code);
  });
}
