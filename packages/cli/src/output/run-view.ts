/** Output of runs, and of waiting for them. */
import { path } from "../client/client.ts";
import { type FirstFailure, firstFailure } from "../client/first-failure.ts";
import type { DagRun, Deadline, RunGroup } from "../client/resources.ts";
import { type Wait, type WaitResult, waitForRun } from "../client/wait-for-run.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import type { Fields, Session } from "../session.ts";
import { plainLine, type Terminal } from "../terminal.ts";
import { commandLine, logCommand } from "./command-line.ts";
import { instanceName } from "./instance-name.ts";
import { progressPrinter } from "./progress-printer.ts";
import { paintState, paintStateNote, stateName } from "./state.ts";
import type { Column } from "./table.ts";
import { moment, relativeTime, span } from "./when.ts";

export function runColumns(terminal: Terminal, runs: readonly DagRun[]): readonly Column<DagRun>[] {
  return [
    { title: "DAG", value: (run) => run.dag_id },
    { title: "RUN", value: (run) => run.dag_run_id },
    {
      title: "STATE",
      value: (run) => run.state,
      paint: (run, cell) => paintState(terminal, run.state, cell),
    },
    // `runs list` sorts by this time.
    { title: "DUE", value: (run) => relativeTime(run.run_after) },
    { title: "TOOK", value: (run) => span(run.duration), align: "right", optional: true },
    { title: "STARTED", value: (run) => relativeTime(run.start_date), optional: true },
    { title: "TYPE", value: (run) => run.run_kind, optional: true },
    { title: "LOGICAL DATE", value: (run) => moment(run.logical_date), optional: true },
    ...(runs.some(({ parent }) => parent) ? [{ title: "PARENT", value: parentName, optional: true }] : []),
  ];
}

/** Short form for a list. */
function parentName({ parent }: DagRun): string {
  return parent ? `${parent.dag_id} ${parent.dag_run_id} ${instanceName(parent)}` : "";
}

/** Details of a run besides its own document. */
interface RunDetails {
  readonly failure?: FirstFailure | undefined;
  /** The command that prints the log of the failed task. */
  readonly failureLog?: string | undefined;
  readonly missed?: readonly Deadline[];
}

export function runFields(run: DagRun, { failure, failureLog, missed = [] }: RunDetails = {}): Fields {
  return [
    ["dag", run.dag_id],
    ["run", run.dag_run_id],
    ["state", run.state],
    ...(run.held_by ?? []).map(
      ({ code, message }) => ["because", `${plainLine(message)} [${code}]`] as const,
    ),
    ["run try", run.max_tries === null ? null : `${run.try_number} of ${run.max_tries}`],
    ["next try", run.retry_at && `${moment(run.retry_at)} (${relativeTime(run.retry_at)})`],
    ...groupFields(run),
    ["tasks", progressText(run)],
    ["type", run.run_kind],
    ["version", run.dag_versions.map(({ version_number }) => version_number).join(", ")],
    ["logical date", moment(run.logical_date)],
    [
      "data interval",
      run.data_interval_start
        ? `${moment(run.data_interval_start)} to ${moment(run.data_interval_end)}`
        : null,
    ],
    ["queued", moment(run.queued_at)],
    ["started", moment(run.start_date)],
    ["ended", moment(run.end_date)],
    ["took", tookText(run)],
    ["slot time", slotText(run)],
    ["driven by", lockText(run)],
    ["conf", isEmpty(run.conf) ? null : JSON.stringify(run.conf)],
    ["by", run.triggering_user_name],
    [run.parent?.is_sub_dag ? "part of" : "started by", parentText(run)],
    ["reason", run.end_reason],
    ["note", run.note],
    ...missed.map((deadline) => ["missed", missedText(deadline)] as const),
    ["failed first", failure && failureText(failure, { withTime: true })],
    ["its log", failureLog],
  ];
}

/** For a run that has not ended, the time since its start. */
function tookText({ duration, start_date, state }: DagRun): string | null {
  if (state !== "running" || !start_date) return span(duration);
  return `${span((Date.now() - Date.parse(start_date)) / 1_000)} so far`;
}

function progressText({ progress }: DagRun): string | null {
  if (!progress || progress.total === 0) return null;
  const { by_state, finished, percent, total } = progress;
  const states = Object.entries(by_state).map(([state, count]) => `${count} ${stateName(state)}`);
  return `${finished} of ${total} ended (${percent} %): ${states.join(", ")}`;
}

/** Totals over all tasks: process time, slot time and deferred time. */
function slotText({ slot_seconds: slots }: DagRun): string | null {
  if (!slots || slots.occupied + slots.running + slots.deferred === 0) return null;
  const deferred = slots.deferred > 0 ? `, deferred ${span(slots.deferred)}` : "";
  return `processes ran ${span(slots.running)}, slots held ${span(slots.occupied)}${deferred}`;
}

function lockText({ lock }: DagRun): string | null {
  if (!lock) return null;
  const since = lock.since === null ? "" : `, since ${moment(lock.since)}`;
  return `${lock.kind} ${lock.job_id} (process ${lock.pid} on ${lock.hostname})${since}, generation ${lock.generation}`;
}

/** Number of groups, or items of mapped groups, that are shown. */
const GROUPS_SHOWN = 10;

function groupFields(run: DagRun): Fields {
  const fields = (run.groups ?? []).flatMap((group) => {
    const { group_id, map_index } = group;
    const text = groupText(run, group);
    const name = `group ${group_id}${map_index < 0 ? "" : `[${map_index}]`}`;
    return text === null ? [] : [[name, text] as const];
  });
  const more = fields.length - GROUPS_SHOWN;
  return more <= 0 ? fields : [...fields.slice(0, GROUPS_SHOWN), ["groups", `and ${more} more`]];
}

/** null unless a try has failed. */
function groupText(run: DagRun, { max_tries, retry_at, state, try_number }: RunGroup): string | null {
  const which = `try ${try_number} of ${max_tries}`;
  if (state === "waiting") {
    // The run was ended manually between two tries.
    if (run.state !== "running") return `${which} failed`;
    return `${which} failed, next try at ${moment(retry_at)} (${relativeTime(retry_at)})`;
  }
  if (try_number === 1) return null;
  return state === "open" ? which : `${which}: ${state}`;
}

/** The task that started a run, with its run and DAG. */
function parentText({ parent }: DagRun): string | null {
  if (!parent) return null;
  return `task ${instanceName(parent)} of run ${parent.dag_run_id} of ${parent.dag_id}`;
}

/** The failed task, its try, the reason, and the number of other failures. */
export function failureText(
  { instance, others }: FirstFailure,
  { withTime }: { readonly withTime: boolean } = { withTime: false },
): string {
  const { end_date, reason, try_number } = instance;
  const at = withTime ? `, ${moment(end_date)}` : "";
  const more = others > 0 ? ` (${others} more failed)` : "";
  return `${plainLine(instanceName(instance))}, try ${try_number}${at}${reason ? `: ${plainLine(reason)}` : ""}${more}`;
}

/** "deadline of the task load (start): due 2026-11-15 02:00:00Z". */
function missedText({ after, due_at, task_id }: Deadline): string {
  const whose = task_id === null ? "deadline of the run" : `deadline of the task ${task_id}`;
  return `${whose}, counted from ${after}: due ${moment(due_at)} (${relativeTime(due_at)})`;
}

/**
 * Watches a run until its end, prints the outcome and returns the exit code. The caller has printed the id of the run; these
 * lines do not repeat it.
 */
export async function watchRun(
  session: Session,
  run: Pick<Wait, "dagId" | "runId" | "timeoutMs">,
): Promise<ExitCode> {
  const print = progressPrinter(session);
  const onProgress: Wait["onProgress"] = (current) => print(progressLine(session.terminal, current));
  const result = await session.interruptible((signal) =>
    waitForRun(session.client, { ...run, signal, onProgress }),
  );
  return reportWait(session, run, result);
}

async function reportWait(
  session: Session,
  run: Pick<Wait, "dagId" | "runId">,
  result: WaitResult,
): Promise<ExitCode> {
  const again = commandLine(session, "runs", "wait", run.dagId, run.runId);
  if (result.kind === "detached") {
    session.terminal.note(`Detached; the run continues. Watch it again with \`${again}\`.`);
    return EXIT.interrupted;
  }
  if (result.kind === "timeout") {
    session.terminal.note(`Timed out; the run continues. Watch it again with \`${again}\`.`);
    return EXIT.waitTimeout;
  }
  session.note(outcomeLine(session.terminal, result.run));
  if (result.run.state === "success") return EXIT.ok;
  const failure = await firstFailure(session.client, path`/dags/${run.dagId}/dagRuns/${run.runId}`);
  if (failure) {
    session.note(`  failed first: ${failureText(failure)}`);
    session.note(`  its log: ${logCommand(session, failure.instance)}`);
  } else if (result.run.end_reason) session.note(`  reason: ${plainLine(result.run.end_reason)}`);
  return EXIT.failed;
}

/** A finished run in one line, for stderr. */
export function finishedLine(terminal: Terminal, run: DagRun): string {
  return outcomeLine(terminal, run, `${run.dag_id}  ${run.dag_run_id}  `);
}

function outcomeLine(terminal: Terminal, { duration, state }: DagRun, name = ""): string {
  const mark = state === "success" ? terminal.paintNote("green", "✓") : terminal.paintNote("red", "✗");
  return `${mark} ${name}${paintStateNote(terminal, state)} in ${span(duration)}`;
}

function progressLine(terminal: Terminal, run: DagRun): string {
  const parts = Object.entries(run.progress?.by_state ?? {}).map(([state, count]) =>
    paintStateNote(terminal, state, `${count} ${stateName(state)}`),
  );
  return [run.state, ...parts].join(" · ");
}

function isEmpty(conf: unknown): boolean {
  return conf === null || conf === undefined || (typeof conf === "object" && Object.keys(conf).length === 0);
}
