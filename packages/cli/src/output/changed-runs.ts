/** Preview, progress and result of a change to several runs. */
import { type Changes, changeRuns, type RunRefusal } from "../client/change-runs.ts";
import type { DagRun } from "../client/resources.ts";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import type { Session } from "../session.ts";
import type { Terminal } from "../terminal.ts";
import { paintStateNote } from "./state.ts";
import { type Column, renderTable } from "./table.ts";
import { moment } from "./when.ts";

/** Number of runs named in a preview or report. */
const RUNS_SHOWN = 20;

/** A run, and the number of its tasks that change. */
export interface AffectedRun {
  readonly run: DagRun;
  /** null: all tasks; the run has no instances yet. */
  readonly tasks: number | null;
}

/** Sequentially. */
export async function inspectRuns(
  session: Session,
  runs: readonly DagRun[],
  inspect: (run: DagRun) => Promise<AffectedRun>,
): Promise<AffectedRun[]> {
  const found: AffectedRun[] = [];
  for (const run of runs) {
    if (runs.length > 1) session.terminal.status(`Checking run ${found.length + 1} of ${runs.length}…`);
    found.push(await inspect(run));
  }
  return found;
}

/** "12 runs", "48 tasks of 12 runs". */
export function countText(affected: readonly AffectedRun[]): string {
  const tasks = affected.reduce((sum, each) => sum + (each.tasks ?? 0), 0);
  const runs = plural(affected.length, "run");
  return tasks === 0 ? runs : `${plural(tasks, "task")} of ${runs}`;
}

/** On stderr; JSON and YAML output has the same on stdout. */
export function showPreview(session: Session, affected: readonly AffectedRun[]): void {
  const { terminal } = session;
  if (session.format !== "table") return;
  const [head = "", ...lines] = renderTable(
    affected.slice(0, RUNS_SHOWN),
    columns(terminal),
    terminal.noteWidth,
  );
  session.note([terminal.paintNote("bold", head), ...lines, ...more(affected)].join("\n"));
}

function columns(terminal: Terminal): readonly Column<AffectedRun>[] {
  return [
    { title: "RUN", value: ({ run }) => run.dag_run_id },
    {
      title: "STATE",
      value: ({ run }) => run.state,
      paint: ({ run }, cell) => paintStateNote(terminal, run.state, cell),
    },
    { title: "LOGICAL DATE", value: ({ run }) => moment(run.logical_date), optional: true },
    { title: "TASKS", value: ({ tasks }) => (tasks === null ? "all" : String(tasks)), align: "right" },
  ];
}

export interface RunChange {
  readonly dagId: string;
  readonly affected: readonly AffectedRun[];
  /** The change as a participle: "cleared". */
  readonly participle: string;
  readonly change: (runId: string) => Promise<boolean>;
  /** The reason of runs that needed no change: "had ended". */
  readonly unneeded: string;
}

/** @throws If some runs could not be changed, naming them. */
export async function applyToRuns(
  session: Session,
  { affected, change, dagId, participle, unneeded }: RunChange,
): Promise<void> {
  const { terminal } = session;
  const progress = (ended: number) => `${ended} of ${affected.length} runs of ${dagId} ${participle}`;
  let shownAt = Date.now();
  const onProgress = (ended: number) => {
    if (terminal.liveStatus) return terminal.status(`${progress(ended)}…`);
    // Permanent lines: at most one per ten seconds.
    if (Date.now() - shownAt < 10_000 || ended === affected.length) return;
    shownAt = Date.now();
    session.note(`${progress(ended)}…`);
  };
  const runIds = affected.map(({ run }) => run.dag_run_id);
  const changes = await session.interruptible((signal) => changeRuns(runIds, { signal, change, onProgress }));
  const { exit, ...result } = changes;
  const already =
    result.unneeded.length === 0 ? "" : ` ${plural(result.unneeded.length, "run")} ${unneeded}.`;
  await session.printDone({ dag_id: dagId, ...result }, `${progress(result.done.length)}.${already}`);
  if (exit !== EXIT.ok)
    throw new CliError("TW_CLI_PARTIAL", partialText(changes, participle), {
      exit,
      remedy: "run the same command again; it continues with the remaining runs",
    });
}

function partialText({ left, refused }: Changes, participle: string): string {
  const lines = [
    ...refused
      .slice(0, RUNS_SHOWN)
      .map(({ dag_run_id, message }: RunRefusal) => `  ${dag_run_id}: ${message}`),
    ...more(refused),
    ...left.slice(0, RUNS_SHOWN).map((runId) => `  ${runId}: not tried`),
    ...more(left),
  ];
  return [`${plural(refused.length + left.length, "run")} could not be ${participle}:`, ...lines].join("\n");
}

function more(list: readonly unknown[]): string[] {
  const hidden = list.length - RUNS_SHOWN;
  return hidden > 0 ? [`  … and ${hidden} more`] : [];
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
