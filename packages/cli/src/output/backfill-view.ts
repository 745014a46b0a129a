/** Output of backfills and their progress. */
import { zoneNamed } from "@tradewind/engine/zone";
import {
  type Backfill,
  type BackfillProgress,
  type DryRun,
  type DryRunDate,
  watchToEnd,
} from "../client/backfills.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import type { Fields, Session } from "../session.ts";
import type { Terminal } from "../terminal.ts";
import { progressLine, remainingText, STYLES } from "./backfill-progress.ts";
import { progressPrinter } from "./progress-printer.ts";
import type { Column } from "./table.ts";
import { moment, relativeTime } from "./when.ts";

/** The ends of a range: days in the DAG's time zone if the range is whole days, otherwise instants. */
export function rangeText(
  { from_date, to_date }: Pick<Backfill, "from_date" | "to_date">,
  zone: string,
): { readonly from: string; readonly to: string } {
  const local = (at: number) => new Date(at + zoneNamed(zone).offsetAt(at)).toISOString();
  const first = local(Date.parse(from_date));
  const last = local(Date.parse(to_date));
  if (first.endsWith("T00:00:00.000Z") && last.endsWith("T23:59:59.999Z"))
    return { from: first.slice(0, 10), to: last.slice(0, 10) };
  return { from: moment(from_date), to: moment(to_date) };
}

export function backfillColumns(
  terminal: Terminal,
  zones: ReadonlyMap<string, string>,
): readonly Column<Backfill>[] {
  return [
    { title: "ID", value: (it) => String(it.id), align: "right" },
    { title: "DAG", value: (it) => it.dag_id },
    { title: "STATE", value: stateOf, paint: (it, cell) => terminal.paint(STYLES[it.state], cell) },
    { title: "FROM", value: (it) => rangeText(it, zones.get(it.dag_id) ?? "UTC").from },
    { title: "TO", value: (it) => rangeText(it, zones.get(it.dag_id) ?? "UTC").to },
    { title: "RUNS", value: (it) => String(it.total_runs), align: "right" },
    { title: "AT ONCE", value: (it) => String(it.max_active_runs), align: "right", optional: true },
    { title: "CREATED", value: (it) => relativeTime(it.created_at), optional: true },
  ];
}

export function dryRunColumns(terminal: Terminal): readonly Column<DryRunDate>[] {
  return [
    { title: "LOGICAL DATE", value: (date) => moment(date.logical_date) },
    {
      title: "WHAT WOULD HAPPEN",
      value: (date) => INTENTIONS[date.action](date.state ?? "pending"),
      paint: (date, cell) => (date.action === "kept" ? terminal.paint("dim", cell) : cell),
    },
  ];
}

const INTENTIONS: Readonly<Record<DryRunDate["action"], (state: string) => string>> = {
  created: () => "a new run",
  cleared: (state) => `rerun (its run: ${state})`,
  kept: (state) => `skipped: it has a run (${state})`,
  awaited: (state) => `waits for its run (${state})`,
};

/** The dates of the range, and its interpretation. */
export function dryRunSummary(dry: DryRun): string[] {
  const { backfills, total_entries: total } = dry;
  const dates = `${total} date${total === 1 ? "" : "s"}, ${moment(dry.first_date)} to ${moment(dry.last_date)}`;
  const range = `${moment(dry.from_date)} to ${moment(dry.to_date)}, both included`;
  const cut = backfills.length < total ? [`Showing the first ${backfills.length}.`] : [];
  return [`${dates}. The range is ${range}.`, ...cut];
}

export function backfillFields({ backfill, ...progress }: BackfillProgress, zone: string): Fields {
  const range = rangeText(backfill, zone);
  const { runs, tasks } = progress;
  return [
    ["id", String(backfill.id)],
    ["dag", backfill.dag_id],
    ["state", stateOf(backfill)],
    ["waits", backfill.waits_because],
    ["progress", `${progress.percent} %`],
    ["runs", tallyText(runs)],
    ["tasks", tallyText(tasks)],
    [
      "not its own",
      runs.elsewhere === 0
        ? null
        : `${runs.elsewhere} of these runs had started before the backfill reached their date; it waits for them`,
    ],
    ["left", progress.remaining_seconds === null ? null : remainingText(progress.remaining_seconds)],
    ["from", range.from],
    ["to", range.to],
    ["order", backfill.run_backwards ? "backwards" : null],
    ["reprocess", backfill.reprocess_behavior],
    ["at once", `${backfill.max_active_runs} runs`],
    ["on failure", backfill.stop_on_failure ? "stops" : "continues"],
    ["version", backfill.run_on_latest_version ? "the DAG's current one" : "the version at its creation"],
    ["conf", backfill.dag_run_conf == null ? null : JSON.stringify(backfill.dag_run_conf)],
    ["created", moment(backfill.created_at)],
    ["by", backfill.created_by],
    ["ended", moment(backfill.completed_at)],
  ];
}

function tallyText(tally: BackfillProgress["tasks"]): string {
  const parts = [`${tally.succeeded} succeeded`, `${tally.skipped} skipped`, `${tally.failed} failed`];
  return `${tally.finished} of ${tally.total} finished (${parts.join(", ")}), ${tally.running} running`;
}

function stateOf(backfill: Backfill): string {
  return backfill.is_stopping ? "stopping" : backfill.state;
}

/** Watches a backfill until its end, prints the outcome and returns the exit code. */
export async function watchBackfill(
  session: Session,
  watch: { readonly id: number; readonly timeoutMs: number | undefined },
): Promise<ExitCode> {
  const { terminal } = session;
  const print = progressPrinter(session);
  const onProgress = (progress: BackfillProgress): void =>
    print(progressLine(terminal, progress, terminal.statusWidth));
  const result = await session.interruptible((signal) =>
    watchToEnd(session.client, { ...watch, signal, onProgress }),
  );
  const again = `tradewind backfill wait ${watch.id}`;
  if (result.kind === "detached") {
    terminal.note(`Detached; the backfill continues. Watch it again with \`${again}\`.`);
    return EXIT.interrupted;
  }
  if (result.kind === "timeout") {
    terminal.note(`Timed out; backfill ${watch.id} continues. Watch it again with \`${again}\`.`);
    return EXIT.waitTimeout;
  }
  const { progress } = result;
  const { backfill, runs, tasks } = progress;
  await session.printDone(
    progress,
    `${endMark(terminal, backfill)} backfill ${backfill.id} of ${backfill.dag_id} ${backfill.state}: runs ${tallyText(runs)}; tasks ${tallyText(tasks)}`,
  );
  if (backfill.state === "done") return EXIT.ok;
  if (runs.failed > 0)
    session.note(`  Failed runs: \`tradewind runs list ${backfill.dag_id} --state failed\``);
  return EXIT.failed;
}

function endMark(terminal: Terminal, backfill: Backfill): string {
  return backfill.state === "done" ? terminal.paintNote("green", "✓") : terminal.paintNote("red", "✗");
}
